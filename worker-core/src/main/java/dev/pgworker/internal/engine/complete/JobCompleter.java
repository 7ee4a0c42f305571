package dev.pgworker.internal.engine.complete;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.claim.ClaimTracker;
import dev.pgworker.internal.engine.queue.FreedQueues;
import dev.pgworker.internal.engine.queue.InFlight;
import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.engine.run.EncodedOutcome;
import dev.pgworker.internal.engine.run.JobOutcome;
import dev.pgworker.internal.engine.run.OutcomeEncoder;
import dev.pgworker.internal.engine.run.OutcomeInbox;
import dev.pgworker.internal.failure.Backoff;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.HeldClaim;
import dev.pgworker.internal.store.HeldQueue;
import dev.pgworker.internal.store.OutcomeStore;
import dev.pgworker.internal.store.Release;
import dev.pgworker.internal.store.RunRecord;
import dev.pgworker.internal.store.WriteResult;
import dev.pgworker.job.Job;

/**
 * Writes outcomes in groups on {@code worker-complete}: what ends while a write is under way forms the next one. An
 * outcome stays here until it is written or the job turns out to be another claim's.
 *
 * <p>A group that the database refuses is written one by one, so that an outcome that cannot be written affects its own job
 * alone: that is put away as failed, with the reason, or left to the reconciler where even this is refused. While nothing can be
 * written, outcomes wait; after a while the database is asked whether that is because of the jobs, and if so they are left to
 * the reconciler one after the other, so that others get their turn. A full disk is waited for, however long.
 */
public final class JobCompleter extends BackgroundService {

    private static final Logger log = WorkerLog.of(JobCompleter.class);

    private static final int LARGEST_GROUP = 500;

    /** What a completion fails with where a row is locked, or one is not where it was. */
    private static final Set<String> SOMETHING_HELD = Set.of("55P03", "40P01", "40001");

    private final WorkerContext context;
    private final OutcomeStore store;
    private final LocalQueue localQueue;
    private final InFlight inFlight;
    private final ClaimTracker tracker;
    private final FreedQueues freedQueues;
    private final OutcomeInbox inbox;
    private final OutcomeReporter reporter;
    private final Refusals refusals;
    private final QueuesToFree toFree;

    /** What the next write holds, one outcome of a job. Owned by the thread; survives a failed write. */
    private final Map<Long, Ending> group = new LinkedHashMap<>();

    /** Outcomes of jobs of which there is another one in the group. Owned by the thread. */
    private final Deque<Ending> later = new ArrayDeque<>();

    /** How long to wait before busy jobs are tried again. Owned by the thread. */
    private final Backoff busy = new Backoff(Duration.ofMillis(20), Duration.ofMillis(320));

    /** Why the last outcome could not be written; null if none is in the way. */
    private volatile @Nullable String obstacle;

    /**
     * Creates a completer for one worker.
     *
     * @param patience how long an outcome that the database refuses is tried again before it is left to the reconciler
     */
    public JobCompleter(
            WorkerContext context,
            OutcomeStore store,
            LocalQueue localQueue,
            ClaimTracker tracker,
            FreedQueues freedQueues,
            OutcomeInbox inbox,
            Duration patience) {
        super("worker-complete", true, context.outage());
        this.context = context;
        this.store = store;
        this.localQueue = localQueue;
        inFlight = localQueue.inFlight();
        this.tracker = tracker;
        this.freedQueues = freedQueues;
        this.inbox = inbox;
        reporter = new OutcomeReporter(context, this::progress);
        refusals = new Refusals(store, patience);
        toFree = new QueuesToFree(store, context.signal());
    }

    /** Returns why outcomes cannot be written; null while nothing is known to be in the way. */
    public @Nullable String obstacle() {
        return obstacle;
    }

    /**
     * Waits until every outcome submitted so far is written, and the queues are free.
     *
     * @return false if that takes longer than the limit
     */
    public boolean awaitWritten(Duration limit) throws InterruptedException {
        long deadline = System.nanoTime() + limit.toNanos();
        boolean written = inFlight.awaitIdle(limit);
        return toFree.await(deadline) && written;
    }

    @Override
    protected void step() throws SQLException, InterruptedException {
        try {
            fill();
            settleDecided();
            SQLException first = writeIsolated(Ending::isSuccess);
            SQLException second = writeIsolated(ending -> !ending.isSuccess());
            freeQueues();
            if (first != null || second != null) {
                throw first == null ? second : first;
            }
            obstacle = null;
        } catch (SQLException | RuntimeException | Error e) {
            obstacle = ErrorText.headline(e);
            throw e;
        }
        noteFullDisk();
        awaitBusy();
    }

    /**
     * Where only busy jobs are left they are being changed in an open transaction, which may take long. So may a
     * refusal.
     */
    private void awaitBusy() throws InterruptedException {
        if (group.isEmpty()) {
            busy.reset();
        } else if (inbox.isEmpty()) {
            EncodedOutcome next = inbox.poll(busy.next());
            if (next != null) {
                add(new Ending(next));
            }
        }
    }

    private void fill() throws InterruptedException {
        for (int i = later.size(); i > 0; i--) {
            add(later.remove());
        }
        if (group.isEmpty()) {
            EncodedOutcome next = toFree.isEmpty() ? idle(inbox::take) : inbox.poll(QueuesToFree.PAUSE);
            if (next != null) {
                add(new Ending(next));
            }
        }
        // Those whose rows are locked, or that alone are refused, keep no others out.
        int count = 0;
        long size = 0;
        for (Ending ending : group.values()) {
            if (!ending.busy && ending.backoff == null) {
                count++;
                size += ending.ended.size();
            }
        }
        while (count < LARGEST_GROUP && size < OutcomeInbox.ROOM_TOGETHER) {
            EncodedOutcome next = inbox.poll();
            if (next == null) {
                return;
            }
            add(new Ending(next));
            count++;
            size += next.size();
        }
    }

    private void add(Ending ending) {
        Ending present = group.putIfAbsent(ending.job().id(), ending);
        if (present != null && present != ending) {
            later.add(ending);
        }
    }

    /**
     * Writes outcomes of the group together, or one by one where that is refused. Returns why it is to be repeated, if
     * something was in the way; what could be written is settled all the same.
     *
     * @throws SQLException if the database cannot be used
     */
    private @Nullable SQLException writeIsolated(Predicate<Ending> which) throws SQLException {
        List<Ending> together = group.values().stream()
                .filter(ending -> !ending.alone && which.test(ending))
                .toList();
        if (!together.isEmpty()) {
            try {
                write(together);
            } catch (SQLException | RuntimeException | Error e) {
                together.forEach(ending -> ending.tried = true);
                refusals.requireAnswer(e);
                int tries = together.stream().mapToInt(Ending::failed).max().orElse(1);
                if (!refusals.isGroupToBlame(tries, e)) {
                    return Refusals.asSqlException(e);
                }
                log.debug("A group of {} outcomes was refused; they are written one by one", together.size(), e);
                together.forEach(Ending::isolate);
            }
        }
        SQLException toRepeat = null;
        for (Ending ending : group.values().stream()
                .filter(ending -> ending.alone && !ending.isWaiting() && which.test(ending))
                .toList()) {
            try {
                write(List.of(ending));
                progress();
            } catch (SQLException | RuntimeException | Error e) {
                ending.tried = true;
                refusals.requireAnswer(e);
                if (!isOutOfTheWay(ending, e)) {
                    if (refusals.othersAreWritten(ending)) {
                        letWait(ending, e);
                    } else {
                        toRepeat = Refusals.asSqlException(e);
                    }
                }
            }
        }
        return toRepeat;
    }

    /** Others do not wait for an outcome that alone cannot be written. */
    private void letWait(Ending ending, Throwable e) {
        ending.fullDisk = DatabaseFailure.isDiskFull(e) ? e : null;
        if (ending.backoff == null) {
            ending.backoff = new Backoff();
        }
        if (ending.fullDisk == null && !ending.toldWaiting) {
            ending.toldWaiting = true;
            reporter.named(
                    ending.ended,
                    () -> log.warn(
                            "The outcome of {} cannot be written, unlike those of other jobs; retrying",
                            ending.job(),
                            e));
        }
        ending.waitUntil = System.nanoTime() + ending.backoff.next().toNanos();
    }

    /** The rows of others may still find room, which makes it no less an outage. */
    private void noteFullDisk() {
        for (Ending ending : group.values()) {
            if (ending.fullDisk != null) {
                obstacle = ErrorText.headline(ending.fullDisk);
                context.outage().failed(name(), ending.fullDisk);
                return;
            }
        }
    }

    /** Puts a refused outcome away, or leaves it to the reconciler, if it is to blame; returns false if it is to be tried again. */
    private boolean isOutOfTheWay(Ending ending, Throwable refusal) throws SQLException {
        if (!refusals.isToBlame(ending, refusal)) {
            return false;
        }
        EncodedOutcome whole = ending.ended;
        for (EncodedOutcome instead : OutcomeEncoder.inOtherWords(whole, refusal)) {
            ending.ended = instead;
            try {
                write(List.of(ending));
            } catch (SQLException | RuntimeException | Error e) {
                ending.ended = whole;
                refusals.requireAnswer(e);
                log.debug("The outcome of {} is refused in these words, too", ending.job(), e);
                continue;
            }
            if (OutcomeEncoder.isInexpressible(instead) && !OutcomeEncoder.isInexpressible(whole)) {
                reporter.named(
                        whole,
                        () -> log.error(
                                "The outcome of {} cannot be written; the job counts as failed",
                                ending.job(),
                                refusal));
            }
            return true;
        }
        if (!refusals.mayGiveUp(ending)) {
            return false;
        }
        giveUp(ending, refusal);
        return true;
    }

    /** It is no longer written; the reconciler finds the job, which this worker holds without knowing it. */
    private void giveUp(Ending ending, Throwable refusal) {
        reporter.named(
                ending.ended,
                () -> log.error(
                        "The outcome of {} cannot be written, and the job cannot be marked as failed either; it stays locked until"
                                + " it can be released, and then runs again. A trigger or a constraint on the job tables"
                                + " may be the cause; remove it, or the job",
                        ending.job(),
                        refusal));
        forget(List.of(ending));
        toFree.expect();
        toFree.add(inFlight.settled(List.of(ending.job())));
        tracker.doubt();
        context.signal().capacityFreed();
    }

    /** Writes outcomes together, of which all are successes or none is, and settles those that are written. */
    private void write(List<Ending> endings) throws SQLException {
        if (endings.get(0).isSuccess()) {
            complete(endings);
        } else {
            List<Release> releases = endings.stream()
                    .map(ending -> Objects.requireNonNull(ending.ended.release()))
                    .toList();
            settle(endings, store.release(releases, inFlight.renewals(), runs(endings)), List.of());
            context.signal().jobsMayBeDue();
        }
    }

    private void complete(List<Ending> endings) throws SQLException {
        List<Job> done = endings.stream()
                .map(Ending::job)
                .sorted(Comparator.comparingLong(Job::id))
                .toList();
        Map<Long, RunRecord> runs = runs(endings);
        // What was in the way once may be so for long: then nothing more than the jobs is asked for.
        if (endings.stream().noneMatch(ending -> ending.busy || ending.tried || ending.alone)) {
            List<HeldClaim> held = inFlight.held(done, true);
            boolean addressed = held.stream().allMatch(one -> one.address() != null);
            List<HeldQueue> over = addressed ? inFlight.queuesEndingWith(done) : List.of();
            boolean wake = !over.isEmpty() && localQueue.free() == 0;
            try {
                settle(endings, store.complete(held, over, wake, runs), over);
                noteFreed(over, wake);
                return;
            } catch (SQLException e) {
                if (!SOMETHING_HELD.contains(Objects.requireNonNullElse(e.getSQLState(), ""))) {
                    throw e;
                }
                log.debug(
                        "Other transactions hold rows of {} jobs that have ended, or of their queues", done.size(), e);
            }
        }
        settle(endings, store.complete(inFlight.held(done, false), List.of(), false, runs), List.of());
    }

    private void noteFreed(List<HeldQueue> queues, boolean othersKnow) {
        if (!queues.isEmpty()) {
            if (!othersKnow) {
                freedQueues.add(queues.stream().map(HeldQueue::id).toList());
            }
            context.signal().jobsMayBeDue();
        }
    }

    private void freeQueues() throws SQLException {
        try {
            toFree.free();
        } catch (SQLException | RuntimeException | Error e) {
            refusals.requireAnswer(e);
            log.debug("Queues could not be freed", e);
        }
    }

    /** Returns whether a queue may be locked although no job of it is in flight. May be called from any thread. */
    public boolean isFreeingQueues() {
        return toFree.mayBeLocked();
    }

    private static Map<Long, RunRecord> runs(List<Ending> endings) {
        Map<Long, RunRecord> runs = new HashMap<>();
        for (Ending ending : endings) {
            RunRecord run = ending.ended.run();
            if (run != null) {
                runs.put(ending.job().id(), run);
            }
        }
        return runs;
    }

    /** Settles what handlers' transactions have written, or found to be another claim's. */
    private void settleDecided() {
        List<Ending> decided = new ArrayList<>();
        Map<Long, WriteResult> lost = new HashMap<>();
        for (Ending ending : group.values()) {
            if (ending.ended.outcome() instanceof JobOutcome.Committed) {
                decided.add(ending);
            } else if (ending.ended.outcome() instanceof JobOutcome.Lost) {
                decided.add(ending);
                lost.put(ending.job().id(), WriteResult.LOST);
            }
        }
        if (!decided.isEmpty()) {
            settle(decided, lost, List.of());
        }
    }

    /**
     * Removes what is written from the group, makes room for other claims, and reports it.
     *
     * @param freed the queues that have been freed with that
     */
    private void settle(List<Ending> endings, Map<Long, WriteResult> outcomes, List<HeldQueue> freed) {
        refusals.written();
        List<Ending> settled = new ArrayList<>();
        boolean anyLost = false;
        for (Ending ending : endings) {
            WriteResult written = outcomes.get(ending.job().id());
            ending.busy = written == WriteResult.BUSY
                    || (written == WriteResult.LOST && inFlight.renewals().takePending(Claim.of(ending.job())));
            if (!ending.busy) {
                settled.add(ending);
                anyLost |= written == WriteResult.LOST;
            }
        }
        forget(settled);
        toFree.expect();
        List<HeldQueue> over = new ArrayList<>(
                inFlight.settled(settled.stream().map(Ending::job).toList()));
        Set<Integer> free = freed.stream().map(HeldQueue::id).collect(Collectors.toSet());
        over.removeIf(queue -> free.contains(queue.id()));
        toFree.add(over);
        if (anyLost) {
            tracker.doubt();
        }
        context.signal().capacityFreed();
        settled.forEach(
                ending -> reporter.report(ending, outcomes.get(ending.job().id())));
    }

    private void forget(List<Ending> endings) {
        for (Ending ending : endings) {
            group.remove(ending.job().id(), ending);
            inbox.forget(ending.ended.claim());
        }
    }
}
