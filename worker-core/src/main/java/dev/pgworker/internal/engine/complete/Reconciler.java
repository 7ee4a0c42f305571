package dev.pgworker.internal.engine.complete;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.claim.ClaimTracker;
import dev.pgworker.internal.engine.queue.InFlight;
import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.engine.run.JobExecutor;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.PeriodicService;
import dev.pgworker.internal.lifecycle.WorkSignal;
import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.HeldQueue;
import dev.pgworker.internal.store.HoldingStore;
import dev.pgworker.internal.store.HoldingStore.HeldJob;
import dev.pgworker.internal.store.JobStore;
import dev.pgworker.internal.store.OutcomeStore;
import dev.pgworker.internal.store.Release;
import dev.pgworker.internal.store.Release.Action;
import dev.pgworker.internal.store.RenewedLocks;
import dev.pgworker.internal.store.WriteResult;
import dev.pgworker.job.Job;

/**
 * Compares on {@code worker-reconcile} what this worker holds by the database with what the worker knows, and corrects
 * differences: no other worker would, because this one lives.
 *
 * <ul>
 *   <li>Every second: claims that are known but that no thread runs, gives back or writes are given back.
 *   <li>By a look at all jobs: those that are held but not known were claimed in an answer that never arrived, for example;
 *       they are given back. The look takes no lock. It follows every statement whose end is unknown, at once and twice more
 *       later, because a server may finish a statement after its client has gone; and without any such reason it is made
 *       once a minute, or after a hundred times as long as it takes.
 * </ul>
 *
 * <p>A job that is held but not known may be on its way here: {@link ClaimTracker}.
 */
public final class Reconciler extends PeriodicService implements WorkSignal.Receiver {

    private static final Logger log = WorkerLog.of(Reconciler.class);

    private static final Duration TICK = Duration.ofSeconds(1);

    /** The longest time between two steps while no job is here. */
    private static final Duration IDLE_TICK = Duration.ofSeconds(5);

    private static final List<Duration> LOOKS_AFTER_DOUBT =
            List.of(Duration.ZERO, Duration.ofSeconds(5), Duration.ofSeconds(30));

    /** The longest time between two looks, so that nothing is held without need for two minutes. */
    private static final Duration LONGEST_INTERVAL = Duration.ofSeconds(105);

    /** Looks take a hundredth of the time at most, and a tenth while there is a doubt. */
    private static final int SHARE = 100;

    private static final int SHARE_IN_DOUBT = 10;

    /** Node.js releases locks of four hours without asking who holds them. */
    private static final Duration RENEW_AFTER = Duration.ofHours(1);

    /** How long the database may take for a look at all jobs. */
    private static final Duration LOOK_LIMIT = Duration.ofMinutes(1);

    /** How long to wait for statements that may bring what is unknown; then other things have their turn. */
    private static final Duration LONGEST_AWAIT = Duration.ofSeconds(2);

    private static final Duration RECHECK = Duration.ofMillis(50);

    private final WorkerContext context;
    private final HoldingStore holdings;
    private final OutcomeStore outcomes;
    private final LocalQueue localQueue;
    private final InFlight inFlight;
    private final ClaimTracker tracker;
    private final JobExecutor executor;
    private final StallDiagnosis stallDiagnosis;
    private final Duration interval;

    /** Which look after a doubt comes next; the size of the list when there is none. Set to 0 by any thread. */
    private final AtomicInteger nextLook = new AtomicInteger(LOOKS_AFTER_DOUBT.size());

    private volatile long doubtedAt;

    private final AtomicLong reconciled = new AtomicLong();

    // Owned by the thread.
    private long lookAt;
    private long earliestLook = System.nanoTime();
    private Set<Claim> suspects = Set.of();

    /** When they were found. */
    private long suspectedAt = System.nanoTime();

    /** What is unknown and cannot be given back, each told once. Changed by the thread only. */
    private final Set<Claim> refused = ConcurrentHashMap.newKeySet();

    /**
     * Creates the reconciler of one worker.
     *
     * @param executor knows which claims are attended to, and gives back those that are not
     * @param stallDiagnosis asked when no job has started for a while although a handler is free
     * @param interval the time between two looks without a reason, if looks are fast
     */
    public Reconciler(
            WorkerContext context,
            JobStore store,
            LocalQueue localQueue,
            ClaimTracker tracker,
            JobExecutor executor,
            StallDiagnosis stallDiagnosis,
            Duration interval) {
        super("worker-reconcile", "reconcile held jobs with the database", context.outage());
        this.context = context;
        this.holdings = store.holdings();
        this.outcomes = store.outcomes();
        this.localQueue = localQueue;
        inFlight = localQueue.inFlight();
        this.tracker = tracker;
        this.executor = executor;
        this.stallDiagnosis = stallDiagnosis;
        this.interval = interval;
        lookAt = System.nanoTime() + interval.toNanos();
    }

    @Override
    public void holdingsInDoubt() {
        doubtedAt = System.nanoTime();
        nextLook.set(0);
        wake();
    }

    /**
     * Returns true if a statement has not ended, or has ended in an unknown way and no look has followed, or what a look has found
     * cannot be given back.
     */
    public boolean isInDoubt() {
        return tracker.isInDoubt() || !refused.isEmpty();
    }

    /** Returns how many jobs this worker held without knowing it, or knew without running them, since its start. */
    public long reconciled() {
        return reconciled.get();
    }

    /** Returns why a due job does not start although a handler is free; null while there is no such job. */
    public @Nullable String stall() {
        return stallDiagnosis.stall();
    }

    /** A part that fails does not keep the others from being done, unless the database cannot be used. */
    @Override
    protected Duration work() throws SQLException, InterruptedException {
        giveBackUnattended();
        SQLException first = null;
        for (Part part : List.<Part>of(this::renew, stallDiagnosis::check, this::lookIfDue)) {
            try {
                part.run();
            } catch (SQLException e) {
                if (DatabaseFailure.of(e) == DatabaseFailure.OUTAGE) {
                    throw e;
                }
                first = first == null ? e : first;
            }
        }
        if (first != null) {
            throw first;
        }
        return Duration.ofNanos(untilNextStep());
    }

    /** A part of a step. */
    @FunctionalInterface
    private interface Part {
        void run() throws SQLException, InterruptedException;
    }

    private void lookIfDue() throws SQLException, InterruptedException {
        long time = System.nanoTime();
        if (time - earliestLook >= 0 && (time - lookAt >= 0 || time - nextLookAt() >= 0)) {
            look();
        }
    }

    /** Returns when the next look after a doubt is due; a time that never comes if there is none. */
    private long nextLookAt() {
        int look = nextLook.get();
        return look < LOOKS_AFTER_DOUBT.size()
                ? doubtedAt + LOOKS_AFTER_DOUBT.get(look).toNanos()
                : System.nanoTime() + Long.MAX_VALUE / 2;
    }

    private long untilNextStep() {
        long time = System.nanoTime();
        long untilLook = Math.max(earliestLook - time, Math.min(lookAt - time, nextLookAt() - time));
        Duration tick = inFlight.isIdle() ? IDLE_TICK : TICK;
        return Math.max(
                0, Math.min(Math.min(tick.toNanos(), stallDiagnosis.stallAfter().toNanos()), untilLook));
    }

    /** Gives back what was taken from the local queue but is in no thread's hands, now and a tick ago. */
    private void giveBackUnattended() {
        long time = System.nanoTime();
        if (time - suspectedAt
                < Math.min(TICK.toNanos(), stallDiagnosis.stallAfter().toNanos())) {
            return;
        }
        suspectedAt = time;
        Set<Claim> unattended = new HashSet<>(localQueue.taken());
        unattended.removeIf(executor::isAttendedTo);
        Set<Claim> twice = new HashSet<>(unattended);
        twice.retainAll(suspects);
        suspects = unattended;
        for (Claim claim : twice) {
            Job job = inFlight.job(claim);
            if (job != null) {
                reconciled.incrementAndGet();
                log.error("{} was claimed but is not running; it is released", job);
                executor.giveBack(job);
                publish(1, 0);
            }
        }
    }

    private void renew() throws SQLException {
        List<Claim> claims = inFlight.toRenew(RENEW_AFTER);
        if (!claims.isEmpty()) {
            Set<Long> renewed = holdings.renew(claims, inFlight.renewals());
            claims.removeIf(claim -> !renewed.contains(claim.jobId()));
            inFlight.renewals().renewed(claims);
        }
    }

    private void look() throws SQLException, InterruptedException {
        int look = nextLook.get();
        long begin = System.nanoTime();
        boolean afterDoubt = begin - nextLookAt() >= 0;
        long doubtsBefore = tracker.doubts();
        long took = 0;
        boolean compared;
        try {
            List<HeldJob> held = holdings.held(LOOK_LIMIT);
            List<HeldQueue> queues = holdings.heldQueues(LOOK_LIMIT);
            took = System.nanoTime() - begin;
            compared = giveBackUnknown(held, queues);
        } finally {
            long rest = Math.min(SHARE * took, LONGEST_INTERVAL.toNanos());
            lookAt = System.nanoTime() + Math.max(interval.toNanos(), rest);
            earliestLook = System.nanoTime() + SHARE_IN_DOUBT * took;
        }
        if (!compared) {
            // A statement takes long: look again when it has ended.
            nextLook.compareAndSet(look, Math.min(look, LOOKS_AFTER_DOUBT.size() - 1));
            return;
        }
        tracker.settled(doubtsBefore);
        if (afterDoubt && tracker.doubts() == doubtsBefore) {
            nextLook.compareAndSet(look, look + 1);
        }
    }

    /** Returns false if it could not be found out, because a statement has not ended that may bring what is unknown. */
    private boolean giveBackUnknown(List<HeldJob> held, List<HeldQueue> queues)
            throws SQLException, InterruptedException {
        refused.retainAll(held.stream().map(HeldJob::claim).toList());
        List<HeldJob> unknown = new ArrayList<>(held);
        unknown.removeIf(this::isKnown);
        List<HeldQueue> unknownQueues = new ArrayList<>(queues);
        unknownQueues.removeIf(queue -> inFlight.containsQueue(queue.id()));
        if (unknown.isEmpty() && unknownQueues.isEmpty()) {
            return true;
        }
        if (!awaitEnd(tracker.lastBegun())) {
            return false;
        }
        unknown.removeIf(this::isKnown);
        int jobs = unknown.isEmpty() ? 0 : giveBack(unknown);
        unknownQueues.removeIf(queue -> inFlight.containsQueue(queue.id()));
        if (!unknownQueues.isEmpty()) {
            Set<Integer> left = outcomes.free(unknownQueues);
            unknownQueues.removeIf(queue -> left.contains(queue.id()));
        }
        if (jobs > 0 || !unknownQueues.isEmpty()) {
            reconciled.addAndGet(jobs);
            log.warn(
                    "{} jobs and {} queues were held by this worker without its knowledge, because a response of the database"
                            + " was lost or could not be used; they are released",
                    jobs,
                    unknownQueues.size());
            publish(jobs, unknownQueues.size());
        }
        return true;
    }

    /** A lock that has been renewed is known by its first time. */
    private boolean isKnown(HeldJob held) {
        return inFlight.claimOf(held.claim().jobId(), held.claim().lockedAt()) != null;
    }

    /** Waits until the statements have ended that had begun by then; returns whether they have. */
    private boolean awaitEnd(long upTo) throws InterruptedException {
        long deadline = System.nanoTime() + LONGEST_AWAIT.toNanos();
        while (!tracker.haveEnded(upTo)) {
            if (isStopping() || System.nanoTime() - deadline >= 0) {
                return false;
            }
            rest(RECHECK);
        }
        return true;
    }

    /** Gives jobs back together, or one by one where that is refused; returns how many it has given back. */
    private int giveBack(List<HeldJob> unknown) throws SQLException {
        List<Release> releases = unknown.stream()
                .map(held -> new Release(held.claim(), held.key(), null, Action.BACK, null, null, null))
                .toList();
        try {
            Collection<WriteResult> written =
                    outcomes.release(releases, RenewedLocks.UNCHANGED, Map.of()).values();
            unknown.forEach(held -> refused.remove(held.claim()));
            return (int) written.stream()
                    .filter(result -> result != WriteResult.LOST && result != WriteResult.GONE)
                    .count();
        } catch (SQLException e) {
            if (DatabaseFailure.of(e) == DatabaseFailure.OUTAGE && !DatabaseFailure.isAnswer(e)) {
                throw e;
            } else if (unknown.size() == 1) {
                tellRefused(unknown.get(0).claim(), e);
                return 0;
            }
        }
        int givenBack = 0;
        for (HeldJob held : unknown) {
            givenBack += giveBack(List.of(held));
        }
        return givenBack;
    }

    private void tellRefused(Claim claim, SQLException e) {
        if (refused.add(claim)) {
            log.error(
                    "Job {} is held by this worker without its knowledge, and cannot be released; retrying",
                    claim.jobId(),
                    e);
        }
    }

    /**
     * Looks once on the calling thread, after the service has been stopped.
     *
     * @param limit how long the database may take for each of two answers
     * @return false if a statement has not ended yet, the database does not answer, or something cannot be given back
     */
    public boolean lookForTheLastTime(Duration limit) {
        try {
            if (!tracker.haveEnded(tracker.lastBegun())) {
                return false;
            }
            long doubtsBefore = tracker.doubts();
            if (!giveBackUnknown(holdings.held(limit), holdings.heldQueues(limit))) {
                return false;
            }
            tracker.settled(doubtsBefore);
            return refused.isEmpty();
        } catch (SQLException | RuntimeException | Error e) {
            log.debug("Cannot determine what this worker still holds", e);
            return false;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    private void publish(int jobs, int queues) {
        context.events().publish(new WorkerEvent.ClaimsReconciled(context.workerId(), jobs, queues));
    }
}
