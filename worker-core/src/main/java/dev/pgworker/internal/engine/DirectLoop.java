package dev.pgworker.internal.engine;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.store.DirectStore;
import dev.pgworker.internal.store.DirectStore.Floor;
import dev.pgworker.internal.store.DirectStore.Request;
import dev.pgworker.internal.store.DirectStore.Taken;
import dev.pgworker.internal.store.JobStore;
import dev.pgworker.internal.store.TaskIds;
import dev.pgworker.job.Job;

/**
 * Locks jobs of direct tasks, runs them on its own thread and deletes them, all in one transaction, again and again: one of the
 * chains {@code worker-direct-1} and so on.
 *
 * <p>A batch lasts about {@link #BATCH_NANOS}; what has not run by then is free again without having been written. Jobs that do
 * not succeed are claimed when the batch ends, and what is to become of them is written as the outcomes of other jobs are. So is
 * one whose handler takes long: the batch ends without it.
 */
final class DirectLoop extends BackgroundService {

    private static final Logger log = LoggerFactory.getLogger(DirectLoop.class);

    /** A transaction that is open for longer leaves the others what finished jobs have left. */
    private static final long BATCH_NANOS = Duration.ofMillis(50).toNanos();

    /** A handler that takes longer goes on without its batch. */
    private static final long SLOW_HANDLER_NANOS = Duration.ofMillis(100).toNanos();

    private static final int LARGEST_BATCH = 2_000;
    private static final int FIRST_BATCH = 16;
    private static final int GROWTH = 4;

    private static final Duration FLAGS_RETRY = Duration.ofSeconds(1);

    /** How long to wait while all jobs that are due wait to be claimed in the ordinary way. */
    private static final long STALLED_NANOS = Duration.ofMillis(10).toNanos();

    /** The same while there is no room for them; room that is made while the chain begins to rest does not end this. */
    private static final long FULL_NANOS = Duration.ofMillis(250).toNanos();

    /** A look that takes longer reads what finished jobs have left, and is made less often. */
    private static final long SLOW_NANOS = Duration.ofMillis(10).toNanos();

    /** Such looks take at most this part of the time. */
    private static final int SLOW_SHARE = 10;

    /** So many in a row are no coincidence. */
    private static final int MANY_SLOW_LOOKS = 10;

    /** After so many failures in a row that may have been anything, the ordinary way is tried. */
    private static final int MOST_FAILURES = 5;

    private final String workerId;
    private final int number;
    private final DirectChains chains;
    private final DirectTasks direct;
    private final DirectRest rest;
    private final Fetcher fetcher;
    private final JobStore store;
    private final DirectStore directStore;
    private final LocalQueue localQueue;
    private final Reconciler audit;
    private final JobExecutor executor;
    private final JobCompleter completer;
    private final Ownership ownership;
    private final CurrentFlags flags;
    private final long pollNanos;
    private final WorkerEvents events;

    private final AtomicBoolean notified = new AtomicBoolean();
    private volatile boolean idle;

    /** The batch whose handlers run. */
    private volatile @Nullable Batch current;

    /** Used by the thread, and broken by a stop that does not wait any longer. */
    private volatile DirectStore.@Nullable Session session;

    // Owned by the thread.
    private TaskIds tasks = TaskIds.NONE;
    private boolean mayHaveDue;
    private long pollAt = System.nanoTime();
    private long dueAt = Long.MAX_VALUE;
    private int size = FIRST_BATCH;
    private boolean lastFull;

    /** A floor is that of the part for which it was found. */
    private int lastParts = 1;

    private @Nullable Floor floor;
    private long fullLookAt = pollAt;
    private long noteLookAt = pollAt;
    private long dueLookAt = pollAt;

    /** Before this {@link System#nanoTime} nothing is taken: a look in vain has read much, other tasks' jobs for instance. */
    private long takeAt = pollAt;

    private int slowLooks;
    private int failures;

    DirectLoop(
            String workerId,
            int number,
            DirectChains chains,
            DirectTasks direct,
            DirectRest rest,
            Fetcher fetcher,
            JobStore store,
            DirectStore directStore,
            LocalQueue localQueue,
            Reconciler audit,
            JobExecutor executor,
            JobCompleter completer,
            Ownership ownership,
            CurrentFlags flags,
            Duration pollInterval,
            WorkerEvents events,
            Outage outage) {
        super("worker-direct-" + (number + 1), true, outage);
        this.workerId = workerId;
        this.number = number;
        this.chains = chains;
        this.direct = direct;
        this.rest = rest;
        this.fetcher = fetcher;
        this.store = store;
        this.directStore = directStore;
        this.localQueue = localQueue;
        this.audit = audit;
        this.executor = executor;
        this.completer = completer;
        this.ownership = ownership;
        this.flags = flags;
        pollNanos = pollInterval.toNanos();
        this.events = events;
    }

    /** Says that there may be a job to run. May be called from any thread. */
    void jobsMayBeDue() {
        notified.set(true);
        wake();
    }

    /** Says that there is room for jobs that are claimed, or that jobs may be run from here on. May be called from any thread. */
    void capacityFreed() {
        if (idle && rest.size() > 0) {
            wake();
        }
    }

    /** Returns true while the chain waits for something to do. */
    boolean isIdle() {
        return idle;
    }

    /** Returns true while a handler runs. */
    boolean isRunning() {
        return current != null;
    }

    /**
     * Ends the batch without the handler that is running if that takes long, so that the other jobs are free. Asks the database;
     * not for the chain's own thread.
     */
    void releaseSlow() {
        Batch batch = current;
        if (batch != null) {
            batch.releaseSlow();
        }
    }

    /** Breaks a batch whose handler does not end. May be called from any thread. */
    void abort() {
        DirectStore.Session current = session;
        if (current != null) {
            current.abort();
        }
    }

    @Override
    protected void step() throws SQLException, InterruptedException {
        try {
            tryStep();
            failures = 0;
        } catch (ForbiddenFlagsException e) {
            mayHaveDue = true;
            rest(FLAGS_RETRY.toNanos());
        } catch (SQLException | RuntimeException | Error e) {
            mayHaveDue = true;
            closeSession();
            DatabaseFailure kind = DatabaseFailure.of(e);
            boolean refused = kind == DatabaseFailure.REFUSED || kind == DatabaseFailure.INTERNAL;
            boolean outage = kind == DatabaseFailure.OUTAGE && !DatabaseFailure.isAnswer(e);
            if (!isStopping() && (refused || (!outage && ++failures >= MOST_FAILURES))) {
                failures = 0;
                direct.suspend(e);
            }
            throw e;
        }
    }

    private void tryStep() throws SQLException, InterruptedException {
        long time = System.nanoTime();
        if (time - pollAt >= 0) {
            pollAt = time + pollNanos;
            if (number == 0 || !chains.isFirstIdle()) {
                tasks = store.claims().tasks(direct.identifiers());
                mayHaveDue = true;
            }
        }
        if (notified.getAndSet(false) || (dueAt != Long.MAX_VALUE && time - dueAt >= 0)) {
            mayHaveDue = true;
        }
        if (direct.isSuspended() || !ownership.mayClaim()) {
            rest(Math.min(pollNanos, FLAGS_RETRY.toNanos()));
            return;
        }
        if (tasks.identifiers().isEmpty()) {
            tasks = store.claims().tasks(direct.identifiers());
        }
        if (rest.size() > 0) {
            rest.claim(fetcher.tasks(), flags.get());
        }
        if (mayHaveDue && time - takeAt < 0) {
            notified.set(false);
            rest(takeAt - time);
        } else if (mayHaveDue) {
            batch();
        } else {
            long wakeAt = dueAt == Long.MAX_VALUE || pollAt - dueAt < 0 ? pollAt : dueAt;
            rest(Math.max(0, wakeAt - time));
        }
    }

    private void rest(long nanos) throws InterruptedException {
        idle = true;
        try {
            if (!notified.get()) {
                pause(nanos);
            }
        } finally {
            idle = false;
        }
    }

    private void batch() throws SQLException, InterruptedException {
        long begin = System.nanoTime();
        Collection<String> forbidden = flags.get();
        shield(true);
        Batch batch;
        try {
            batch = new Batch(openSession());
            batch.run(forbidden);
        } finally {
            shield(false);
        }
        if (batch.stalled) {
            rest(localQueue.free() > 0 ? STALLED_NANOS : FULL_NANOS);
        } else if (!batch.mayHaveMore) {
            lookAhead(begin);
        }
    }

    /** What falls due next is not asked often while the answer takes long. */
    private void lookAhead(long since) throws SQLException {
        long begin = System.nanoTime();
        mayHaveDue = false;
        if (begin - dueLookAt < 0) {
            dueAt = dueLookAt;
            return;
        }
        Duration untilDue;
        try {
            untilDue = store.due().nextDue(tasks, Duration.ofNanos(begin - since), null);
        } catch (SQLException e) {
            mayHaveDue = true;
            throw e;
        }
        long end = System.nanoTime();
        dueLookAt = end - begin < SLOW_NANOS ? end : end + SLOW_SHARE * (end - begin);
        dueAt = untilDue == null || untilDue.toNanos() > pollNanos ? Long.MAX_VALUE : end + untilDue.toNanos();
        if (floor != null && (dueAt == Long.MAX_VALUE || fullLookAt - dueAt < 0)) {
            dueAt = fullLookAt;
        }
    }

    private DirectStore.Session openSession() throws SQLException {
        DirectStore.Session current = session;
        if (current == null) {
            current = directStore.open(number);
            session = current;
        }
        return current;
    }

    private void closeSession() {
        DirectStore.Session current = session;
        session = null;
        if (current != null) {
            current.close();
        }
    }

    @Override
    protected void afterLastStep() {
        closeSession();
    }

    /** One transaction. */
    private final class Batch {

        private final DirectStore.Session session;
        private final Thread thread = Thread.currentThread();

        // While handlers run the batch may be ended by another thread.
        @GuardedBy("this") private final List<Taken> done = new ArrayList<>();

        @GuardedBy("this") private final List<Taken> others = new ArrayList<>();

        @GuardedBy("this") private final List<EncodedOutcome> ended = new ArrayList<>();

        /** Whose handler runs. */
        @GuardedBy("this") private @Nullable Taken running;

        @GuardedBy("this") private long begunAt;

        /** Whether the batch has ended without the job that runs, which is claimed since. */
        private volatile boolean released;

        /** What went wrong when it was to end so. */
        @GuardedBy("this") private @Nullable Throwable failure;

        /** Whether there may be more to do at once. */
        private boolean mayHaveMore;

        /** Whether all there is waits to be claimed. */
        private boolean stalled;

        Batch(DirectStore.Session session) {
            this.session = session;
        }

        void run(Collection<String> forbidden) throws SQLException, InterruptedException {
            List<Taken> taken = take(forbidden);
            List<Taken> mine = withoutClaimed(taken, forbidden);
            if (!mine.isEmpty()) {
                mine = withoutSuspects(mine);
            }
            if (mine.isEmpty()) {
                session.rollBack();
                stalled = !taken.isEmpty();
                return;
            }
            try {
                List<Taken> toRun = mine;
                boolean cut = idle(() -> runJobs(toRun));
                end();
                mayHaveMore |= cut;
            } catch (SQLException | RuntimeException | Error e) {
                leaveToOthers();
                throw e;
            }
        }

        private List<Taken> take(Collection<String> forbidden) throws SQLException {
            int wanted = Math.min(10 * LARGEST_BATCH, size + rest.size());
            int parts = lastFull && !direct.isAnyHeldUp() ? chains.count() : 1;
            if (parts != lastParts) {
                floor = null;
                lastParts = parts;
            }
            publish(() -> new WorkerEvent.FetchStarted(workerId, wanted));
            long begin = System.nanoTime();
            Floor from = floor != null && begin - fullLookAt < 0 ? floor : null;
            List<Taken> taken = session.take(tasks, new Request(wanted, forbidden, number % parts, parts, from));
            long took = System.nanoTime() - begin;
            boolean full = taken.size() >= wanted;
            if (from == null) {
                floor = null;
                fullLookAt = begin + took + SLOW_SHARE * took;
            }
            if (taken.isEmpty() && took > SLOW_NANOS) {
                takeAt = begin + took + SLOW_SHARE * took;
            }
            if ((full || from != null || took > SLOW_NANOS) && !taken.isEmpty()) {
                floor = Floor.at(taken.get(taken.size() - 1).job());
            }
            mayHaveMore = full || parts > 1;
            lastFull = full;
            if (full) {
                chains.helpWanted();
            }
            publish(() -> taken.isEmpty()
                    ? new WorkerEvent.FetchEmpty(workerId)
                    : new WorkerEvent.JobsFetched(workerId, taken.size()));
            return taken;
        }

        /** Nobody who adds a job under a key is to wait for the batch, least of all one of its handlers. */
        private List<Taken> withoutClaimed(List<Taken> taken, Collection<String> forbidden) throws SQLException {
            List<Taken> mine = new ArrayList<>(taken.size());
            List<Long> claimed = new ArrayList<>();
            boolean anyKeyed = false;
            boolean anyLeft = rest.size() > 0;
            for (Taken one : taken) {
                if (one.job().key() != null || !one.hasPayload()) {
                    claimed.add(one.job().id());
                    anyKeyed |= one.job().key() != null;
                } else if (!anyLeft || !rest.isLeft(one.job().id())) {
                    mine.add(one);
                }
            }
            rest.add(claimed);
            if (!anyKeyed) {
                return mine;
            }
            session.rollBack();
            return mine.isEmpty()
                    ? mine
                    : session.take(
                            tasks,
                            forbidden,
                            mine.stream().map(one -> one.job().id()).toList());
        }

        private List<Taken> withoutSuspects(List<Taken> taken) throws SQLException {
            long begin = System.nanoTime();
            boolean look = begin - noteLookAt >= 0;
            Set<Long> suspects = session.note(taken, look);
            long took = System.nanoTime() - begin;
            if (look) {
                slowLooks = took > SLOW_NANOS ? slowLooks + 1 : 0;
                noteLookAt = slowLooks < MANY_SLOW_LOOKS ? begin : begin + took + SLOW_SHARE * took;
            }
            if (suspects.isEmpty()) {
                return taken;
            }
            rest.addSuspects(suspects);
            return taken.stream()
                    .filter(one -> !suspects.contains(one.job().id()))
                    .toList();
        }

        /** Returns whether jobs are left that have not run. */
        private boolean runJobs(List<Taken> taken) {
            long begin = System.nanoTime();
            long nanos = 0;
            int started = 0;
            current = this;
            chains.watch();
            try {
                for (Taken one : taken) {
                    if (nanos >= BATCH_NANOS || isStopping() || !ownership.mayStart() || !session.isOpen()) {
                        break;
                    }
                    started++;
                    begin(one);
                    executor.runDirect(one.job(), () -> isOwned(one), end -> ended(one, end));
                    nanos = System.nanoTime() - begin;
                    if (released) {
                        break;
                    }
                }
            } finally {
                current = null;
                if (released) {
                    direct.goesOn();
                }
            }
            boolean cut = started < taken.size();
            if (cut && floor != null) {
                floor = Floor.at(taken.get(started).job());
            }
            if (started > 0) {
                long most = BATCH_NANOS / Math.max(1, nanos / started);
                size = (int) Math.max(1, Math.min(Math.min(most, LARGEST_BATCH), (long) GROWTH * size));
            }
            return cut;
        }

        private synchronized void begin(Taken one) {
            running = one;
            begunAt = System.nanoTime();
        }

        private synchronized void ended(Taken one, EncodedOutcome end) {
            running = null;
            if (released && failure == null) {
                completer.submit(end);
                return;
            }
            ended.add(end);
            (end.outcome() instanceof JobOutcome.Success ? done : others).add(one);
        }

        private boolean isOwned(Taken one) {
            if (!Thread.currentThread().equals(thread)) {
                return released ? ownership.holds(one.job()) : session.isOpen();
            }
            synchronized (this) {
                if (!released) {
                    return session.holds();
                }
                return failure == null && ownership.holds(one.job());
            }
        }

        /** Holds up a handler that ends meanwhile. */
        synchronized void releaseSlow() {
            Taken slow = running;
            if (slow == null || released || !session.isOpen() || System.nanoTime() - begunAt < SLOW_HANDLER_NANOS) {
                return;
            }
            released = true;
            log.debug("{} takes long; its batch ends without it", slow.job());
            try {
                write(slow);
            } catch (SQLException | RuntimeException | Error e) {
                failure = e;
            }
            direct.isHeldUp();
        }

        private synchronized void end() throws SQLException {
            if (released) {
                if (failure != null) {
                    throw new SQLException("A direct batch could not end before a handler did", failure);
                }
            } else if (ended.isEmpty()) {
                session.rollBack();
            } else {
                write(null);
            }
        }

        /** Ends the batch; a job that still runs is claimed. */
        private synchronized void write(@Nullable Taken slow) throws SQLException {
            boolean deleted = audit.during(() -> commit(slow));
            if (!deleted) {
                direct.suspend(new SQLException("A job that has succeeded could not be deleted"));
                return;
            }
            localQueue.settledElsewhere(done.size());
            for (Taken one : done) {
                log.debug("{} succeeded", one.job());
                publish(() -> new WorkerEvent.JobCompleted(workerId, one.job()));
            }
        }

        /** Returns whether those that have succeeded are deleted. */
        private synchronized boolean commit(@Nullable Taken slow) throws SQLException {
            List<Taken> claimed = new ArrayList<>(others);
            if (slow != null) {
                claimed.add(slow);
            }
            boolean deleted = session.end(done, claimed);
            List<EncodedOutcome> toWrite = new ArrayList<>(ended);
            if (deleted) {
                toWrite.removeIf(end -> end.outcome() instanceof JobOutcome.Success);
            }
            List<Job> held = new ArrayList<>();
            toWrite.forEach(end -> held.add(end.job()));
            if (slow != null) {
                held.add(slow.job());
                executor.claimed(slow.job());
            }
            localQueue.addEnded(held);
            toWrite.forEach(completer::submit);
            return deleted;
        }

        /** Whether the batch has been committed may be unknown. If not, its jobs are free, and count an attempt the next time. */
        private synchronized void leaveToOthers() {
            if (ended.isEmpty()) {
                return;
            }
            List<Job> started = ended.stream().map(EncodedOutcome::job).toList();
            log.warn(
                    "A direct batch of {} jobs broke; those that have not been deleted run again, the first of them {}",
                    started.size(),
                    started.get(0));
            rest.addSuspects(started.stream().map(Job::id).toList());
            started.forEach(job -> publish(() -> new WorkerEvent.JobLost(workerId, job)));
        }
    }

    private void publish(Supplier<WorkerEvent> event) {
        if (events.isWatched()) {
            events.publish(event.get());
        }
    }
}
