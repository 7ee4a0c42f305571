package dev.pgworker.internal.engine.claim;

import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import java.util.Optional;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.internal.engine.floor.ClaimFloor;
import dev.pgworker.internal.engine.floor.QueueFloors;
import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.store.CarefulClaimRequest;
import dev.pgworker.internal.store.CarefullyClaimed;
import dev.pgworker.internal.store.Chain;
import dev.pgworker.internal.store.ClaimRequest;
import dev.pgworker.internal.store.ClaimStart;
import dev.pgworker.internal.store.Claimed;
import dev.pgworker.internal.store.DueStore;
import dev.pgworker.internal.store.QueueStart;
import dev.pgworker.internal.store.Refused;
import dev.pgworker.internal.store.TaskIds;

/**
 * Decides what each claim looks for, and learns from what it brings:
 *
 * <ul>
 *   <li>from where on, for jobs without a queue ({@link ClaimFloor}) and for those of queues ({@link QueueFloors});
 *   <li>in how many queues ({@link ClaimFront}), and how many jobs of each ({@link LocalQueue#runOf});
 *   <li>all jobs or one half of them, while two chains of claims divide them ({@link Chain});
 *   <li>what is passed over: forbidden flags, and jobs that the server refuses to have claimed ({@link Refusals});
 *   <li>whether with care: a job whose row cannot be read, because it does not fit into memory for instance, or cannot be
 *       claimed, because of a trigger of somebody's, must not keep others from being claimed. After a claim that fails so, jobs
 *       are claimed carefully for a while, and as long as any are known that cannot be claimed. Where that fails as well, jobs are
 *       claimed one by one, so that it shows which one cannot be read: that fails with the reason.
 * </ul>
 *
 * <p>Owned by {@code worker-fetch}, but for what is said to be called by others.
 */
public final class ClaimPlanner {

    private static final Logger log = LoggerFactory.getLogger(ClaimPlanner.class);

    /** So many careful claims follow one that failed; twice as many if the next one that is not careful fails again. */
    private static final int CAREFUL_CLAIMS = 64;

    /** So many claims of one job each follow a careful one that failed. */
    private static final int SINGLE_CLAIMS = 64;

    private static final int MOST_CAREFUL_CLAIMS = 4096;

    /** A second chain that takes longer, to get a connection for instance, keeps its jobs waiting no longer. */
    private static final long PATIENCE_WITH_ODD = Duration.ofMillis(200).toNanos();

    /** How long one chain is enough after a second one was refused, because other workers claim at the same time. */
    private static final long CROWDED = Duration.ofSeconds(1).toNanos();

    /** With so many jobs in a claim, a second chain of claims is worth its while. */
    private static final int MANY = 100;

    /** After so many conflicts, cancellations or answers that the server lacks something in a row one job may be to blame. */
    private static final int MOST_OBSTRUCTIONS = 5;

    private final ClaimPermission permission;
    private final DueStore store;
    private final LocalQueue localQueue;
    private final ClaimFloor floor;
    private final QueueFloors queueFloors;
    private final ClaimTracker tracker;
    private final ClaimFront front;

    /** Owned by the thread of the second chain. */
    private final ClaimFront frontOfOdd;

    private final Refusals refusals = new Refusals();

    private int carefulClaims;

    /** How many there are the next time; more than at first since a claim failed and until one that is not careful succeeds. */
    private int nextCarefulClaims = CAREFUL_CLAIMS;

    /** How many of the careful claims are to be of one job each. */
    private int singleClaims;

    /** How many claims in a row have failed so. */
    private int obstructions;

    /** Whether the next claim looks at all jobs although they are split. */
    private boolean wholeNext;

    /** Whether the next claim looks for what nobody has announced, and nothing is known to be due. */
    private boolean pollNext;

    /** When the second chain was last answered, or the jobs were split, by {@link System#nanoTime}. */
    private volatile long oddAnsweredAt;

    /** Until when there is to be no second chain, by {@link System#nanoTime}. */
    private volatile long crowdedUntil = System.nanoTime();

    /** Why the payload of the next job is not to be read; null if it is. */
    private @Nullable Throwable unreadable;

    /** Creates a planner for one worker. */
    public ClaimPlanner(
            ClaimPermission permission,
            DueStore store,
            LocalQueue localQueue,
            ClaimFloor floor,
            QueueFloors queueFloors,
            ClaimTracker tracker) {
        this.permission = permission;
        this.store = store;
        this.localQueue = localQueue;
        this.floor = floor;
        this.queueFloors = queueFloors;
        this.tracker = tracker;
        front = new ClaimFront(queueFloors::news);
        frontOfOdd = new ClaimFront(queueFloors::news);
    }

    /** Looks the tasks up again. */
    void learnTasks() throws SQLException {
        if (permission.tasks().learn()) {
            floor.forget();
        }
    }

    private TaskIds ordinary() {
        return permission.tasks().ordinary();
    }

    // The usual claim

    /** Returns whether the next claim is a careful one. */
    boolean isCareful() {
        return carefulClaims > 0 || refusals.isAny();
    }

    /** Returns for how many jobs the next claim is to ask. */
    int wanted(int room) {
        return isCareful() && singleClaims > 0 ? 1 : room;
    }

    /**
     * Returns the flags whose jobs the next claim passes over.
     *
     * @throws ForbiddenFlagsException if that is unknown
     */
    Collection<String> forbidden() {
        return permission.flags().get();
    }

    /** Says that the next claim looks for what nobody has announced, and that nothing is known to be due. */
    void polls() {
        pollNext = true;
    }

    /** Returns what the next claim looks for, which is not a careful one. */
    ClaimRequest next(int wanted, Collection<String> forbidden) {
        if (floor.isSplit() && System.nanoTime() - oddAnsweredAt > PATIENCE_WITH_ODD) {
            floor.join();
        }
        Chain chain = wholeNext || !floor.isSplit() ? Chain.WHOLE : Chain.EVEN;
        boolean poll = pollNext;
        wholeNext = false;
        pollNext = false;
        ClaimStart start = floor.current(forbidden, chain == Chain.WHOLE, poll);
        return request(wanted, forbidden, start, queueFloors.ofClaim(poll), chain);
    }

    /**
     * Learns from a claim.
     *
     * @param took how long, at most, ago it began when it was answered
     */
    FetchResult claimed(ClaimRequest request, Claimed claimed, Duration took) throws SQLException {
        nextCarefulClaims = CAREFUL_CLAIMS;
        obstructions = 0;
        queueFloors.claimed(claimed);
        if (request.queueStart() == null) {
            queueFloors.took(took);
        }
        front.claimed(claimed.jobs(), claimed.cut() ? claimed.jobs().size() : request.wanted());
        ClaimStart start = request.start();
        boolean full = claimed.size() >= request.wanted() || claimed.cut();
        boolean elsewhere = false;
        if (claimed.unreadable().isEmpty()) {
            elsewhere = floor.claimed(start, claimed, full, took);
            if (start != null && claimed.at() != null && !full && floor.hasManyLevels()) {
                Instant since = claimed.at().minus(took);
                floor.rest(
                        start, store.dueTimes(ordinary(), since, start.floors().keySet()));
            }
        } else {
            // Rows that could not be read have no place.
            floor.forget();
        }
        // The other chain may be behind, or have ended.
        wholeNext = request.chain() == Chain.EVEN && !full;
        return new FetchResult(
                claimed.size(),
                full || elsewhere || wholeNext,
                full && claimed.size() >= MANY,
                claimed.passedOver() != null);
    }

    private ClaimRequest request(
            int wanted,
            Collection<String> forbidden,
            @Nullable ClaimStart start,
            @Nullable QueueStart queueStart,
            Chain chain) {
        return new ClaimRequest(
                wanted,
                localQueue.freeBytes(),
                forbidden,
                localQueue::runOf,
                (chain == Chain.ODD ? frontOfOdd : front).next(wanted),
                start,
                chain,
                queueStart);
    }

    // Two chains

    /**
     * Splits the jobs between two chains of claims; returns false if that cannot be, is so already, or other workers claim as well, so
     * that the server has enough to do.
     */
    boolean split() {
        if (System.nanoTime() - crowdedUntil < 0) {
            return false;
        }
        oddAnsweredAt = System.nanoTime();
        return floor.split();
    }

    /** Returns whether the jobs are split. May be called from any thread. */
    boolean isSplit() {
        return floor.isSplit();
    }

    /** Ends the split; called by the second chain between its claims. */
    void join() {
        floor.join();
    }

    /** Returns what the next claim of the second chain, on whose thread this is called, looks for; null if there is to be none. */
    @Nullable ClaimRequest nextOdd(int wanted, Collection<String> forbidden) {
        ClaimStart start = floor.currentOfOdd(forbidden);
        return start == null ? null : request(wanted, forbidden, start, queueFloors.ofClaim(), Chain.ODD);
    }

    /** Learns from a claim of the second chain, on its thread; returns whether there may be more for it. */
    boolean claimedOdd(ClaimRequest request, Claimed claimed, Duration took) {
        oddAnsweredAt = System.nanoTime();
        if (claimed.cut() && claimed.size() == 0) {
            // Refused: it has looked at nothing, so there is nothing to learn about places.
            crowdedUntil = System.nanoTime() + CROWDED;
            return false;
        }
        queueFloors.claimed(claimed);
        frontOfOdd.claimed(claimed.jobs(), claimed.cut() ? claimed.jobs().size() : request.wanted());
        if (!claimed.unreadable().isEmpty() || request.start() == null) {
            floor.forget();
            return false;
        }
        boolean full = claimed.size() >= request.wanted() || claimed.cut();
        floor.claimedByOdd(request.start(), claimed, full, took);
        return full;
    }

    // With care

    /** Returns what the next claim looks for, which is a careful one. */
    CarefulClaimRequest nextCareful(int wanted, Collection<String> forbidden) {
        floor.forget();
        return new CarefulClaimRequest(
                wanted,
                localQueue.freeBytes(),
                forbidden,
                refusals.passedOver(),
                unreadable == null,
                queueFloors.ofClaim());
    }

    /** Returns why the payloads of the next claim are not to be read; null if they are. */
    @Nullable Throwable unreadable() {
        return unreadable;
    }

    /**
     * Learns from a careful claim.
     *
     * @throws SQLException if it has brought nothing because the server lacks something
     */
    FetchResult claimedCarefully(CarefullyClaimed answer) throws SQLException {
        boolean mayGoOn = refusals.note(
                ordinary().identifiers().values(), answer.claimed().jobs(), answer.refused());
        int count = answer.claimed().size();
        queueFloors.claimed(answer.claimed());
        Optional<Refused> lack =
                answer.refused().stream().filter(Refused::isLack).findAny();
        if (count == 0 && lack.isPresent()) {
            throw new SQLException(lack.get().reason(), lack.get().state());
        }
        carefulClaims = Math.max(0, carefulClaims - 1);
        singleClaims = Math.max(0, singleClaims - 1);
        unreadable = null;
        obstructions = 0;
        return new FetchResult(count, count > 0 || mayGoOn);
    }

    /**
     * Learns from a claim that failed.
     *
     * @param careful whether it was a careful one
     */
    void failed(boolean careful, Throwable e) {
        DatabaseFailure kind = DatabaseFailure.of(e);
        if (kind == DatabaseFailure.OUTAGE && !DatabaseFailure.isAnswer(e)) {
            return;
        }
        boolean obstructed = kind != DatabaseFailure.REFUSED && kind != DatabaseFailure.INTERNAL;
        if (obstructed && ++obstructions < MOST_OBSTRUCTIONS) {
            return;
        }
        boolean single = singleClaims > 0;
        if (careful || kind == DatabaseFailure.INTERNAL || isAboutData(e)) {
            singleClaims = SINGLE_CLAIMS;
        }
        if (!careful) {
            if (nextCarefulClaims == CAREFUL_CLAIMS) {
                log.warn("A claim failed; jobs are claimed more carefully for a while", ErrorText.loggable(e));
            }
            carefulClaims = nextCarefulClaims;
            nextCarefulClaims = Math.min(2 * nextCarefulClaims, MOST_CAREFUL_CLAIMS);
        } else if (single && kind == DatabaseFailure.INTERNAL) {
            // The server has claimed it: the reconciler finds it.
            tracker.doubt(e);
        } else if (single && isAboutData(e)) {
            unreadable = e;
        }
    }

    /** Data exception, limit exceeded, internal error: what a server says about a row that it cannot send. */
    private static boolean isAboutData(Throwable e) {
        String state = e instanceof SQLException sql ? sql.getSQLState() : null;
        return state != null && (state.startsWith("22") || state.startsWith("54") || state.startsWith("XX"));
    }

    // Looks beside the claims

    /**
     * Returns how long it takes until the next job is due, or claims are to look at other priorities; null if there is none, or not
     * soon.
     *
     * @param elapsed the time since just before the last claim
     */
    @Nullable Duration untilDue(Duration elapsed) throws SQLException {
        long otherLevel = floor.nanosUntilOtherLevel();
        Duration due = store.nextDue(ordinary(), elapsed, floor.levels(), queueFloors.levels());
        return otherLevel == Long.MAX_VALUE || (due != null && due.toNanos() < otherLevel)
                ? due
                : Duration.ofNanos(otherLevel);
    }

    /** Looks for jobs that claims pass over because of the floor; returns whether there are any. May be called from any thread. */
    boolean scanFloor() throws SQLException {
        return floor.scanBelow(start ->
                store.scanBelow(ordinary(), forbiddenIfKnown(), start, ClaimFloor.MOST_LEVELS, ClaimFloor.MOST_STRAYS));
    }

    /** Looks for where the jobs of queues are; returns whether claims have passed any over. May be called from any thread. */
    boolean scanQueues() throws SQLException {
        return queueFloors.scan(start -> store.scanQueues(
                ordinary(), forbiddenIfKnown(), QueueFloors.MOST_LEVELS, QueueFloors.MOST_LANES, start));
    }

    /** Returns in how many nanoseconds the first of the two kinds of scans is due. May be called from any thread. */
    long nanosUntilScan() {
        return Math.min(floor.nanosUntilScan(), queueFloors.nanosUntilScan());
    }

    /** Returns whether a scan for jobs without a queue is due. May be called from any thread. */
    boolean isFloorScanDue() {
        return floor.nanosUntilScan() == 0;
    }

    /** Returns whether a job that this worker may run has been due for longer than that. May be called from any thread. */
    public boolean jobsWait(Duration longerThan, DueStore asked) throws SQLException {
        return asked.waits(ordinary(), forbiddenIfKnown(), longerThan);
    }

    /** Returns one of the jobs that cannot be claimed, and why; null if none is known. May be called from any thread. */
    public @Nullable String refusal() {
        return refusals.example();
    }

    private Collection<String> forbiddenIfKnown() {
        try {
            return permission.flags().get();
        } catch (ForbiddenFlagsException e) {
            return List.of();
        }
    }
}
