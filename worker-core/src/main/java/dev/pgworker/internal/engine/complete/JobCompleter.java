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

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.claim.ClaimTracker;
import dev.pgworker.internal.engine.queue.FreedQueues;
import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.engine.run.EncodedOutcome;
import dev.pgworker.internal.engine.run.JobOutcome;
import dev.pgworker.internal.engine.run.OutcomeEncoder;
import dev.pgworker.internal.engine.run.OutcomeInbox;
import dev.pgworker.internal.failure.Backoff;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.ErrorText;
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
 * <p>A group that the database refuses is written one by one, so that an outcome that cannot be written hurts its own job
 * alone: that is put away as failed, with the reason, or left to the reconciler where even this is refused. While nothing can be
 * written, outcomes wait; after a while the database is asked whether that is because of the jobs, and if so they are left to
 * the reconciler one after the other, so that others get their turn. A full disk is waited for, however long.
 */
public final class JobCompleter extends BackgroundService {

    private static final Logger log = LoggerFactory.getLogger(JobCompleter.class);

    private static final int LARGEST_GROUP = 500;

    /** What a completion fails with where somebody holds a row, or one is not where it was. */
    private static final Set<String> SOMETHING_HELD = Set.of("55P03", "40P01", "40001");

    /** A transaction that holds the row of a queue for so long is worth a word. */
    private static final Duration KEPT_FOR_LONG = Duration.ofSeconds(10);

    private static final Duration SHORTEST_BUSY_PAUSE = Duration.ofMillis(20);
    private static final Duration LONGEST_BUSY_PAUSE = Duration.ofMillis(320);

    /** How often an outcome is written before it is put away where something else may be to blame, a right for instance. */
    private static final int SCHEMA_TRIES = 6;

    /** Into so many parts the patience is divided to say how often an outcome is left to the reconciler while none is written. */
    private static final int LEAVE_SHARE = 30;

    /** So many are left to the reconciler at once after a pause, at most. */
    private static final int MOST_AT_ONCE = 4;

    private final WorkerContext context;
    private final OutcomeStore store;
    private final LocalQueue localQueue;
    private final ClaimTracker tracker;
    private final FreedQueues freedQueues;
    private final OutcomeInbox inbox;
    private final Duration patience;
    private final OutcomeReporter reporter;

    /** What the next write holds, one outcome of a job. Owned by the thread; survives a failed write. */
    private final Map<Long, Ending> group = new LinkedHashMap<>();

    /** Outcomes of jobs of which there is another one in the group. Owned by the thread. */
    private final Deque<Ending> later = new ArrayDeque<>();

    /** What is on its way from the inbox to {@link #group}. Owned by the thread. */
    private final List<EncodedOutcome> drained = new ArrayList<>();

    /** When outcomes were last written, by {@link System#nanoTime}. Owned by the thread. */
    private long writtenAt = System.nanoTime();

    /** Since when outcomes are refused and none is written, by {@link System#nanoTime}; null if not. Owned by the thread. */
    private @Nullable Long refusedSince;

    /** From when the pace of leaving outcomes to the reconciler counts, by {@link System#nanoTime}. Owned by the thread. */
    private long givenUpAt = System.nanoTime();

    /** How long to wait before busy jobs are tried again. Owned by the thread. */
    private Duration busyPause = SHORTEST_BUSY_PAUSE;

    /** Queues of which nothing is left here, by their ids, until they are free. Owned by the thread. */
    private final Map<Integer, HeldQueue> toFree = new LinkedHashMap<>();

    /** Since when such a queue cannot be freed, and when to try again, by {@link System#nanoTime}. Owned by the thread. */
    private long keptSince;

    private long freeAt = System.nanoTime();
    private boolean keptLogged;

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
        this.tracker = tracker;
        this.freedQueues = freedQueues;
        this.inbox = inbox;
        this.patience = patience;
        reporter = new OutcomeReporter(context, this::progress);
    }

    /** Returns why outcomes cannot be written; null while nothing is known to be in the way. */
    public @Nullable String obstacle() {
        return obstacle;
    }

    /**
     * Waits until every outcome submitted so far is written.
     *
     * @return false if that takes longer than the limit
     */
    public boolean awaitWritten(Duration limit) throws InterruptedException {
        return localQueue.awaitIdle(limit);
    }

    @Override
    protected void step() throws SQLException, InterruptedException {
        try {
            fill();
            settleDecided();
            SQLException first = writeIsolated(Ending::isSuccess, this::complete);
            SQLException second = writeIsolated(ending -> !ending.isSuccess(), this::release);
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

    /** Where only busy jobs are left somebody changes them in an open transaction, which may take long. So may a refusal. */
    private void awaitBusy() throws InterruptedException {
        if (group.isEmpty()) {
            busyPause = SHORTEST_BUSY_PAUSE;
        } else if (inbox.isEmpty()) {
            EncodedOutcome next = inbox.poll(busyPause);
            if (next != null) {
                add(new Ending(next));
            }
            Duration longer = busyPause.multipliedBy(2);
            busyPause = longer.compareTo(LONGEST_BUSY_PAUSE) < 0 ? longer : LONGEST_BUSY_PAUSE;
        }
    }

    private void fill() throws InterruptedException {
        for (int i = later.size(); i > 0; i--) {
            add(later.remove());
        }
        if (group.isEmpty()) {
            EncodedOutcome next = toFree.isEmpty() ? idle(inbox::take) : inbox.poll(LONGEST_BUSY_PAUSE);
            if (next != null) {
                add(new Ending(next));
            }
        }
        // Those whose rows somebody holds, or that alone are refused, keep nobody out.
        int room = LARGEST_GROUP
                - (int) group.values().stream()
                        .filter(ending -> !ending.busy && ending.backoff == null)
                        .count();
        if (room > 0) {
            inbox.drainTo(drained, room);
            drained.forEach(next -> add(new Ending(next)));
            drained.clear();
        }
    }

    private void add(Ending ending) {
        Ending present = group.putIfAbsent(ending.job().id(), ending);
        if (present != null && present != ending) {
            later.add(ending);
        }
    }

    /** Writes outcomes together and settles those that are written. */
    @FunctionalInterface
    private interface Writer {
        void write(List<Ending> endings) throws SQLException;
    }

    /**
     * Writes outcomes of the group together, or one by one where that is refused. Returns why it is to be repeated, if
     * something was in the way; what could be written is settled all the same.
     *
     * @throws SQLException if the database cannot be used
     */
    private @Nullable SQLException writeIsolated(Predicate<Ending> which, Writer writer) throws SQLException {
        List<Ending> together = group.values().stream()
                .filter(ending -> !ending.alone && which.test(ending))
                .toList();
        if (!together.isEmpty()) {
            try {
                writer.write(together);
            } catch (SQLException | RuntimeException | Error e) {
                together.forEach(ending -> ending.tried = true);
                requireAnswer(e);
                int tries = together.stream().mapToInt(Ending::failed).max().orElse(1);
                if (tries < mostGroupTries(e) && !isPatienceOver()) {
                    return asSqlException(e);
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
                writer.write(List.of(ending));
                progress();
            } catch (SQLException | RuntimeException | Error e) {
                ending.tried = true;
                requireAnswer(e);
                if (!isOutOfTheWay(ending, e, writer)) {
                    if (othersAreWritten(ending)) {
                        letWait(ending, e);
                    } else {
                        toRepeat = asSqlException(e);
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
                            ErrorText.loggable(e)));
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

    /** Returns how often a group is written before its outcomes are written one by one: a refusal is repeated in vain. */
    private static int mostGroupTries(Throwable e) {
        return switch (DatabaseFailure.of(e)) {
            case CONFLICT, CANCELLED -> 3;
            case OUTAGE -> 5;
            case REFUSED, INTERNAL -> 1;
        };
    }

    /** Returns how often one outcome is written before it is put away. */
    private static int mostTries(Throwable e) {
        return switch (DatabaseFailure.of(e)) {
            case CONFLICT -> 8;
            case CANCELLED -> 5;
            case OUTAGE, REFUSED, INTERNAL -> isAboutTheSchema(e) ? SCHEMA_TRIES : 1;
        };
    }

    /** Puts a refused outcome away, or leaves it to the reconciler, if its job is to blame; returns false if it is to be tried again. */
    private boolean isOutOfTheWay(Ending ending, Throwable e, Writer writer) throws SQLException {
        if (DatabaseFailure.isDiskFull(e)) {
            return false;
        }
        boolean others = othersAreWritten(ending);
        boolean proven = false;
        if (!others && isPatienceOver() && areRowsToBlame()) {
            try {
                // What was in the way may just have ended.
                writer.write(List.of(ending));
                return true;
            } catch (SQLException | RuntimeException | Error again) {
                requireAnswer(again);
                proven = true;
            }
        }
        boolean lacking = DatabaseFailure.of(e) == DatabaseFailure.OUTAGE;
        boolean blamed = lacking
                ? others && ending.isRefusedFor(patience)
                : ending.failed() >= mostTries(e) && (others || !mayConcernAll(e));
        if (!blamed && !proven) {
            return false;
        } else if (!lacking && wroteOtherwise(ending, e, writer)) {
            return true;
        } else if (!others && !proven) {
            return false;
        }
        giveUp(ending, e);
        return true;
    }

    /** As a time limit, a lock or a missing right does. */
    private static boolean mayConcernAll(Throwable e) {
        return DatabaseFailure.of(e) == DatabaseFailure.CANCELLED || isAboutTheSchema(e);
    }

    private boolean othersAreWritten(Ending ending) {
        return writtenAt - ending.refusedAt > 0;
    }

    /** Returns whether nothing has been written for so long that the database is to be asked why. */
    private boolean isPatienceOver() {
        return refusedSince != null && System.nanoTime() - refusedSince >= patience.toNanos();
    }

    /** Asks the database whether outcomes could be written if it were not for their rows; no answer, or too soon, is a no. */
    private boolean areRowsToBlame() {
        long interval = patience.dividedBy(LEAVE_SHARE).toNanos();
        if (System.nanoTime() - givenUpAt < interval) {
            return false;
        }
        try {
            store.writeNothing();
        } catch (SQLException e) {
            log.debug("Nothing can be written", e);
            return false;
        }
        // What was let pass is made up for, as there are pauses of several seconds between the writes that fail.
        long next = givenUpAt + interval;
        long earliest = System.nanoTime() - MOST_AT_ONCE * interval;
        givenUpAt = next - earliest > 0 ? next : earliest;
        return true;
    }

    /** Nobody writes it any more; the reconciler finds the job held by nobody. */
    private void giveUp(Ending ending, Throwable refusal) {
        reporter.named(
                ending.ended,
                () -> log.error(
                        "The outcome of {} cannot be written, and the job cannot be marked as failed either; it stays locked until"
                                + " it can be released, and then runs again. A trigger or a constraint on the job tables"
                                + " may be the cause; remove it, or the job",
                        ending.job(),
                        ErrorText.loggable(refusal)));
        forget(List.of(ending));
        end(List.of(ending.job()));
        tracker.doubt();
        context.signal().capacityFreed();
    }

    private static boolean isAboutTheSchema(Throwable e) {
        String state = stateOf(e);
        return state.startsWith("42") || state.startsWith("3F") || state.startsWith("28");
    }

    private static String stateOf(Throwable e) {
        return e instanceof SQLException sql && sql.getSQLState() != null ? sql.getSQLState() : "";
    }

    /** Throws the failure unless a server that works has answered with it, which may concern one row, whatever it says. */
    private void requireAnswer(Throwable e) throws SQLException {
        if (DatabaseFailure.of(e) == DatabaseFailure.OUTAGE && !DatabaseFailure.isAnswer(e)) {
            refusedSince = null;
            throw asSqlException(e);
        }
        if (refusedSince == null) {
            refusedSince = System.nanoTime();
        }
    }

    private static SQLException asSqlException(Throwable e) {
        return e instanceof SQLException sql ? sql : new SQLException(e);
    }

    /** Writes less and less: what the history is told never keeps a job from ending. */
    private boolean wroteOtherwise(Ending ending, Throwable refusal, Writer writer) throws SQLException {
        if (writeInAscii(ending, refusal)) {
            return true;
        }
        EncodedOutcome whole = ending.ended;
        RunRecord run = whole.run();
        if (run == null) {
            return putAway(ending, refusal);
        }
        if (run.result() != null && wrote(ending, whole.withRun(run.withoutResult()), writer)) {
            return true;
        }
        if (wrote(ending, whole.withoutRun(), writer) || putAway(ending, refusal)) {
            return true;
        }
        ending.ended = whole.withoutRun();
        if (writeInAscii(ending, refusal) || putAway(ending, refusal)) {
            return true;
        }
        ending.ended = whole;
        return false;
    }

    /** The encoding of the database may lack characters of an error's text. */
    private boolean writeInAscii(Ending ending, Throwable refusal) throws SQLException {
        Release release = ending.ended.release();
        if (release == null || release.error() == null || !stateOf(refusal).startsWith("22")) {
            return false;
        }
        EncodedOutcome ended = ending.ended;
        Release ascii = release.withError(ErrorText.ascii(release.error()));
        return wrote(ending, ended.withRelease(ascii), this::release);
    }

    private boolean putAway(Ending ending, Throwable refusal) throws SQLException {
        EncodedOutcome ended = ending.ended;
        EncodedOutcome failed = OutcomeEncoder.inexpressible(
                        ended.job(), "the outcome of this attempt could not be written: " + ErrorText.headline(refusal))
                .withTrace(ended.trace())
                .withRun(ended.run());
        boolean wrote = wrote(ending, failed, this::release);
        if (wrote) {
            reporter.named(
                    ending.ended,
                    () -> log.error(
                            "The outcome of {} cannot be written; the job counts as failed",
                            ending.job(),
                            ErrorText.loggable(refusal)));
        }
        return wrote;
    }

    /** Writes something else of the outcome; returns false, and restores what it was, if that is refused as well. */
    private boolean wrote(Ending ending, EncodedOutcome instead, Writer writer) throws SQLException {
        EncodedOutcome before = ending.ended;
        ending.ended = instead;
        try {
            writer.write(List.of(ending));
            return true;
        } catch (SQLException | RuntimeException | Error e) {
            ending.ended = before;
            requireAnswer(e);
            log.debug("The outcome of {} is refused in other words, too", ending.job(), e);
            return false;
        }
    }

    private void complete(List<Ending> endings) throws SQLException {
        List<Job> done = endings.stream()
                .map(Ending::job)
                .sorted(Comparator.comparingLong(Job::id))
                .toList();
        List<HeldClaim> held = localQueue.held(done);
        Map<Long, RunRecord> runs = runs(endings);
        Map<Long, WriteResult> unwritten;
        // What was in the way once may be so for long: then nothing more than the jobs is asked for.
        if (endings.stream().anyMatch(ending -> ending.busy || ending.tried || ending.alone)) {
            unwritten = store.complete(withoutAddresses(held), List.of(), false, runs);
        } else {
            try {
                List<HeldQueue> over = localQueue.queuesEndingWith(done);
                boolean wake = !over.isEmpty() && localQueue.free() == 0;
                unwritten = store.complete(held, over, wake, runs);
                localQueue.freed(done, over);
                noteFreed(over, wake);
            } catch (SQLException e) {
                if (!SOMETHING_HELD.contains(stateOf(e))) {
                    throw e;
                }
                log.debug("Somebody holds a row of {} jobs that have ended, or of their queues", done.size(), e);
                unwritten = store.complete(withoutAddresses(held), List.of(), false, runs);
            }
        }
        settle(endings, unwritten);
    }

    private static List<HeldClaim> withoutAddresses(List<HeldClaim> held) {
        return held.stream()
                .map(one -> new HeldClaim(one.jobId(), one.lockedAt(), null))
                .toList();
    }

    private void noteFreed(List<HeldQueue> queues, boolean othersKnow) {
        if (!queues.isEmpty()) {
            if (!othersKnow) {
                freedQueues.add(queues.stream().map(HeldQueue::id).toList());
            }
            context.signal().jobsMayBeDue();
        }
    }

    private void release(List<Ending> endings) throws SQLException {
        List<Release> releases = endings.stream()
                .map(ending -> Objects.requireNonNull(ending.ended.release()))
                .toList();
        settle(endings, store.release(releases, localQueue, runs(endings)));
        context.signal().jobsMayBeDue();
    }

    /** Frees queues of which nothing is left here. Whoever holds the row of one for long holds up nothing but that queue. */
    private void freeQueues() throws SQLException {
        if (toFree.isEmpty() || System.nanoTime() - freeAt < 0) {
            return;
        }
        Set<Integer> left;
        try {
            left = store.free(List.copyOf(toFree.values()));
        } catch (SQLException | RuntimeException | Error e) {
            requireAnswer(e);
            log.debug("Queues could not be freed", e);
            left = Set.copyOf(toFree.keySet());
        }
        if (toFree.keySet().retainAll(left)) {
            context.signal().jobsMayBeDue();
        }
        if (toFree.isEmpty()) {
            keptSince = 0;
            keptLogged = false;
            return;
        }
        long now = System.nanoTime();
        keptSince = keptSince == 0 ? now : keptSince;
        freeAt = now + LONGEST_BUSY_PAUSE.toNanos();
        if (!keptLogged && now - keptSince > KEPT_FOR_LONG.toNanos()) {
            keptLogged = true;
            log.warn(
                    "Queues {} stay locked: another transaction has held their rows for {} s, or a trigger refuses the change. Their"
                            + " jobs wait until it ends; others run",
                    toFree.values().stream().map(HeldQueue::name).toList(),
                    KEPT_FOR_LONG.toSeconds());
        }
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
            settle(decided, lost);
        }
    }

    /** Removes what is written from the group, tells about it, and frees the slots. */
    private void settle(List<Ending> endings, Map<Long, WriteResult> outcomes) {
        writtenAt = System.nanoTime();
        refusedSince = null;
        List<Ending> settled = new ArrayList<>();
        boolean anyLost = false;
        for (Ending ending : endings) {
            WriteResult written = outcomes.get(ending.job().id());
            ending.busy = written == WriteResult.BUSY
                    || (written == WriteResult.LOST && localQueue.hasPendingLock(Claim.of(ending.job())));
            if (!ending.busy) {
                settled.add(ending);
                anyLost |= written == WriteResult.LOST;
            }
        }
        forget(settled);
        end(settled.stream().map(Ending::job).toList());
        if (anyLost) {
            tracker.doubt();
        }
        context.signal().capacityFreed();
        settled.forEach(
                ending -> reporter.report(ending, outcomes.get(ending.job().id())));
    }

    private void end(List<Job> jobs) {
        localQueue.settled(jobs).forEach(queue -> toFree.put(queue.id(), queue));
    }

    private void forget(List<Ending> endings) {
        for (Ending ending : endings) {
            group.remove(ending.job().id(), ending);
            inbox.forget(ending.ended.claim());
        }
    }
}
