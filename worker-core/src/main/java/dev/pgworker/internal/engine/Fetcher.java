package dev.pgworker.internal.engine;

import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.store.CarefullyClaimed;
import dev.pgworker.internal.store.Chain;
import dev.pgworker.internal.store.ClaimRequest;
import dev.pgworker.internal.store.ClaimStart;
import dev.pgworker.internal.store.Claimed;
import dev.pgworker.internal.store.JobStore;
import dev.pgworker.internal.store.Refused;
import dev.pgworker.internal.store.TaskIds;
import dev.pgworker.internal.store.Unreadable;

/**
 * Claims jobs and hands them to the executor.
 *
 * <p>A job whose row cannot be read, because it does not fit into memory for instance, or cannot be claimed, because of a
 * trigger of somebody's, must not keep others from being claimed. After a claim that fails so, jobs are claimed carefully for
 * a while, and as long as any are known that cannot be claimed: these are passed over. Where that fails as well, jobs are
 * claimed one by one, so that it shows which one cannot be read: that fails with the reason.
 *
 * <p>Owned by one thread, but for {@link #cancel} and {@link #fetchOdd}.
 */
public final class Fetcher {

    private static final Logger log = LoggerFactory.getLogger(Fetcher.class);

    /** So many careful claims follow one that failed; twice as many if the next one that is not careful fails again. */
    private static final int CAREFUL_CLAIMS = 64;

    /** So many claims of one job each follow a careful one that failed. */
    private static final int SINGLE_CLAIMS = 64;

    private static final int MOST_CAREFUL_CLAIMS = 4096;

    /** A second chain that takes longer, to get a connection for instance, keeps its jobs waiting no longer. */
    private static final long PATIENCE_WITH_ODD = Duration.ofMillis(200).toNanos();

    /** With so many jobs in a claim, a second chain of claims is worth its while. */
    private static final int MANY = 100;

    /** After so many conflicts, cancellations or answers that the server lacks something in a row one job may be to blame. */
    private static final int MOST_OBSTRUCTIONS = 5;

    private static final int CANCELLATIONS = 10;
    private static final Duration BETWEEN_CANCELLATIONS = Duration.ofMillis(100);

    private final String workerId;
    private final JobStore store;
    private final Set<String> identifiers;
    private final LocalQueue localQueue;
    private final Reconciler audit;
    private final JobExecutor executor;
    private final FollowUpClaims continuations;
    private final CurrentFlags flags;
    private final ClaimFloor floor;
    private final QueueFloors queueFloors;
    private final WorkerEvents events;
    private final ClaimBreadth breadth = new ClaimBreadth();

    /** Owned by the thread of the second chain. */
    private final ClaimBreadth breadthOfOdd = new ClaimBreadth();

    /** Written by the owner, read by any thread. */
    private volatile TaskIds tasks = TaskIds.NONE;

    private DirectTasks direct = new DirectTasks(Set.of(), 1, () -> {});

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

    /** When the second chain was last answered, or the jobs were split, by {@link System#nanoTime}. */
    private volatile long oddAnsweredAt;

    /** Why the payload of the next job is not to be read; null if it is. */
    private @Nullable Throwable unreadable;

    /** Creates a fetcher of jobs of the tasks with these identifiers. */
    public Fetcher(
            String workerId,
            JobStore store,
            Set<String> identifiers,
            LocalQueue localQueue,
            Reconciler audit,
            JobExecutor executor,
            FollowUpClaims continuations,
            CurrentFlags flags,
            ClaimFloor floor,
            QueueFloors queueFloors,
            WorkerEvents events) {
        this.workerId = workerId;
        this.store = store;
        this.identifiers = identifiers;
        this.localQueue = localQueue;
        this.audit = audit;
        this.executor = executor;
        this.continuations = continuations;
        this.flags = flags;
        this.floor = floor;
        this.queueFloors = queueFloors;
        this.events = events;
    }

    /** Says which tasks' jobs run in direct batches; none unless called. Call before the first look for tasks. */
    public void leave(DirectTasks others) {
        direct = others;
    }

    /** Looks the ids of the tasks up: a clean-up may have deleted a task, and the next add gives it a new id. */
    public void learnTasks() throws SQLException {
        TaskIds learned = store.claims().tasks(identifiers);
        TaskIds claimed = direct.ordinary(learned);
        if (!claimed.equals(tasks)) {
            tasks = claimed;
            floor.forget();
        }
        continuations.allow(learned);
    }

    TaskIds tasks() {
        return tasks;
    }

    /**
     * Returns how long it takes until the next job is due, or claims are to look at other priorities; null if there is none, or not
     * soon.
     *
     * @param elapsed the time since just before the last claim
     */
    @Nullable Duration untilDue(Duration elapsed) throws SQLException {
        long otherLevel = floor.nanosUntilOtherLevel();
        Duration due = store.due().nextDue(tasks, elapsed, floor.levels(), queueFloors.levels());
        return otherLevel == Long.MAX_VALUE || (due != null && due.toNanos() < otherLevel)
                ? due
                : Duration.ofNanos(otherLevel);
    }

    Set<String> identifiers() {
        return identifiers;
    }

    /** Returns whether a job that this worker may run has been due for longer than that. May be called from any thread. */
    public boolean jobsWait(Duration longerThan) throws SQLException {
        return jobsWait(longerThan, store);
    }

    /** As {@link #jobsWait(Duration)}, asking another store. */
    public boolean jobsWait(Duration longerThan, JobStore asked) throws SQLException {
        return asked.due().waits(tasks, forbiddenIfKnown(), longerThan);
    }

    /** Splits the jobs between two chains of claims; returns false if that cannot be, or is so already. */
    boolean split() {
        oddAnsweredAt = System.nanoTime();
        return floor.split();
    }

    boolean isSplit() {
        return floor.isSplit();
    }

    /** Ends the split; called by the second chain between its claims. */
    void join() {
        floor.join();
    }

    /** Looks for jobs that claims pass over because of the floor; returns whether there are any. May be called from any thread. */
    public boolean lookBelow() throws SQLException {
        return floor.lookBelow(start -> store.due()
                .lookBelow(tasks, forbiddenIfKnown(), start, ClaimFloor.MOST_LEVELS, ClaimFloor.MOST_STRAYS));
    }

    /** Looks for where the jobs of queues are; returns whether claims have passed any over. May be called from any thread. */
    public boolean lookAtQueues() throws SQLException {
        return queueFloors.look(start -> store.due()
                .lookAtQueues(tasks, forbiddenIfKnown(), QueueFloors.MOST_LEVELS, QueueFloors.MOST_LANES, start));
    }

    /** Returns one of the jobs that cannot be claimed, and why; null if none is known. May be called from any thread. */
    public @Nullable String refusal() {
        return refusals.example();
    }

    private Collection<String> forbiddenIfKnown() {
        try {
            return flags.get();
        } catch (ForbiddenFlagsException e) {
            return List.of();
        }
    }

    /** Gives back what has waited too long for a handler, and starts what could not be started before. */
    public void tend() {
        executor.giveBackExpired();
        executor.startMissingRunners();
    }

    /**
     * How a claim went.
     *
     * @param count how many jobs it brought
     * @param mayHaveMore whether the database may hold more due jobs
     * @param wantsSecond whether there is enough to do for another chain of claims
     * @param passedOver whether somebody held queues for the moment, so that it is worth looking again soon
     */
    public record Fetched(int count, boolean mayHaveMore, boolean wantsSecond, boolean passedOver) {

        Fetched(int count, boolean mayHaveMore) {
            this(count, mayHaveMore, false, false);
        }

        /** Returns whether it is worth claiming again at once, or when what has been claimed is done. */
        public boolean mayGoOn() {
            return count > 0 || mayHaveMore;
        }
    }

    /**
     * Claims jobs. Where the database refuses that, the answer is that there may be more: the next claim finds out which.
     *
     * @param room how many there is room for, at least one
     * @throws ForbiddenFlagsException if it is unknown which jobs may be claimed
     */
    public Fetched fetch(int room) throws SQLException {
        Collection<String> forbidden = flags.get();
        boolean careful = carefulClaims > 0 || refusals.isAny();
        int wanted = careful && singleClaims > 0 ? 1 : room;
        publish(() -> new WorkerEvent.FetchStarted(workerId, wanted));
        try {
            return careful ? fetchCarefully(wanted, forbidden) : fetchMany(wanted, forbidden);
        } catch (SQLException | RuntimeException | Error e) {
            becomeCareful(careful, e);
            publish(() -> new WorkerEvent.FetchFailed(workerId, asException(e)));
            if (!careful && DatabaseFailure.of(e) == DatabaseFailure.REFUSED) {
                return new Fetched(0, true);
            }
            throw e;
        }
    }

    private Fetched fetchMany(int wanted, Collection<String> forbidden) throws SQLException {
        if (floor.isSplit() && System.nanoTime() - oddAnsweredAt > PATIENCE_WITH_ODD) {
            floor.join();
        }
        Chain chain = wholeNext || !floor.isSplit() ? Chain.WHOLE : Chain.EVEN;
        wholeNext = false;
        ClaimStart start = floor.current(forbidden, chain == Chain.WHOLE);
        long before = System.nanoTime();
        Claimed answer = audit.during(() -> {
            Claimed claimed = store.claims().claim(tasks, request(wanted, forbidden, start, chain));
            executor.submit(claimed);
            return claimed;
        });
        Duration took = Duration.ofNanos(System.nanoTime() - before);
        nextCarefulClaims = CAREFUL_CLAIMS;
        obstructions = 0;
        return noted(answer, wanted, start, took, chain);
    }

    /**
     * Claims jobs of the second chain on its thread, while the jobs are split; returns whether there may be more of them. What
     * goes wrong is left to {@link #fetch}, which meets it, too.
     *
     * @param room how many there is room for, at least one
     */
    boolean fetchOdd(int room) throws SQLException {
        Collection<String> forbidden = flags.get();
        ClaimStart start = floor.currentOfOdd(forbidden);
        if (start == null) {
            return false;
        }
        publish(() -> new WorkerEvent.FetchStarted(workerId, room));
        long before = System.nanoTime();
        Claimed answer;
        try {
            answer = audit.during(() -> {
                Claimed claimed = store.claims().claim(tasks, request(room, forbidden, start, Chain.ODD));
                executor.submit(claimed);
                return claimed;
            });
        } catch (SQLException | RuntimeException | Error e) {
            publish(() -> new WorkerEvent.FetchFailed(workerId, asException(e)));
            throw e;
        }
        oddAnsweredAt = System.nanoTime();
        publish(answer.size());
        queueFloors.claimed(answer);
        breadthOfOdd.claimed(answer.jobs(), room);
        if (!answer.unreadable().isEmpty()) {
            floor.forget();
            return false;
        }
        boolean full = answer.size() >= room || answer.cut();
        floor.claimedByOdd(start, answer, full, Duration.ofNanos(System.nanoTime() - before));
        return full;
    }

    /** Claims jobs that can be claimed, and fails if there are none because the server lacks something. */
    private Fetched fetchCarefully(int wanted, Collection<String> forbidden) throws SQLException {
        floor.forget();
        Throwable notToBeRead = unreadable;
        CarefullyClaimed answer = audit.during(() -> {
            CarefullyClaimed claimed = store.claims()
                    .claimCarefully(
                            tasks,
                            wanted,
                            localQueue.freeBytes(),
                            forbidden,
                            refusals.passedOver(),
                            notToBeRead == null,
                            queueFloors.ofClaim());
            executor.submit(notToBeRead == null ? claimed.claimed() : allUnreadable(claimed.claimed(), notToBeRead));
            return claimed;
        });
        boolean mayGoOn =
                refusals.note(tasks.identifiers().values(), answer.claimed().jobs(), answer.refused());
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
        publish(count);
        return new Fetched(count, count > 0 || mayGoOn);
    }

    private ClaimRequest request(int wanted, Collection<String> forbidden, @Nullable ClaimStart start, Chain chain) {
        boolean wide = (chain == Chain.ODD ? breadthOfOdd : breadth).isWide();
        return new ClaimRequest(
                wanted,
                localQueue.freeBytes(),
                forbidden,
                localQueue::runOf,
                wide,
                start,
                chain,
                queueFloors.ofClaim());
    }

    private Fetched noted(Claimed claimed, int wanted, @Nullable ClaimStart start, Duration took, Chain chain)
            throws SQLException {
        int count = claimed.size();
        publish(count);
        queueFloors.claimed(claimed);
        breadth.claimed(claimed.jobs(), wanted);
        boolean full = count >= wanted || claimed.cut();
        // Rows that could not be read have no place.
        boolean elsewhere = false;
        if (claimed.unreadable().isEmpty()) {
            elsewhere = floor.claimed(start, claimed, full, took);
            if (start != null && claimed.at() != null && !full && floor.hasManyLevels()) {
                Instant since = claimed.at().minus(took);
                floor.rest(
                        start, store.due().dueTimes(tasks, since, start.floors().keySet()));
            }
        } else {
            floor.forget();
        }
        // The other chain may be behind, or have ended.
        wholeNext = chain == Chain.EVEN && !full;
        return new Fetched(count, full || elsewhere || wholeNext, full && count >= MANY, claimed.passedOver() != null);
    }

    private static Claimed allUnreadable(Claimed claimed, Throwable why) {
        List<Unreadable> jobs = new ArrayList<>(claimed.unreadable());
        claimed.jobs().forEach(job -> jobs.add(new Unreadable(job, why)));
        return new Claimed(List.of(), jobs, claimed.cut(), claimed.at(), claimed.passedOver());
    }

    private void becomeCareful(boolean careful, Throwable e) {
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
                log.warn("A claim failed; for a while jobs are claimed with more care", ErrorText.loggable(e));
            }
            carefulClaims = nextCarefulClaims;
            nextCarefulClaims = Math.min(2 * nextCarefulClaims, MOST_CAREFUL_CLAIMS);
        } else if (single && kind == DatabaseFailure.INTERNAL) {
            // The server has claimed it: the audit finds it.
            audit.doubt(e);
        } else if (single && isAboutData(e)) {
            unreadable = e;
        }
    }

    /** Data exception, limit exceeded, internal error: what a server says about a row that it cannot send. */
    private static boolean isAboutData(Throwable e) {
        String state = e instanceof SQLException sql ? sql.getSQLState() : null;
        return state != null && (state.startsWith("22") || state.startsWith("54") || state.startsWith("XX"));
    }

    private static Exception asException(Throwable e) {
        return e instanceof Exception exception ? exception : new IllegalStateException(e);
    }

    /** Ends claims that are under way or about to begin, after the last one was asked for. Returns at once. */
    public void cancel() {
        try {
            Thread thread = new Thread(this::cancelNow, "worker-claim-cancel");
            thread.setDaemon(true);
            thread.start();
        } catch (Error e) {
            log.warn(
                    "There is no thread that could cancel a claim; it may take effect after the worker has stopped", e);
        }
    }

    /** The server may not answer, and ignores a cancellation that comes before the statement. */
    private void cancelNow() {
        try {
            for (int i = 0; i < CANCELLATIONS && store.claims().cancelClaims(); i++) {
                Thread.sleep(BETWEEN_CANCELLATIONS.toMillis());
            }
        } catch (SQLException e) {
            log.debug("The claim could not be cancelled", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void publish(int count) {
        publish(() -> count == 0 ? new WorkerEvent.FetchEmpty(workerId) : new WorkerEvent.JobsFetched(workerId, count));
    }

    private void publish(Supplier<WorkerEvent> event) {
        if (events.isWatched()) {
            events.publish(event.get());
        }
    }
}
