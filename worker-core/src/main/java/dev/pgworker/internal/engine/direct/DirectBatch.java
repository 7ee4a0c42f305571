package dev.pgworker.internal.engine.direct;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.engine.run.EncodedOutcome;
import dev.pgworker.internal.engine.run.JobOutcome;
import dev.pgworker.internal.store.DirectStore;
import dev.pgworker.internal.store.DirectStore.Taken;
import dev.pgworker.internal.store.RunRecord;
import dev.pgworker.job.Job;

/**
 * Jobs of direct tasks that are locked, run and deleted in one transaction. It lasts about {@link #BATCH_NANOS}; what has not run by
 * then is free again without having been written. Jobs that do not succeed are claimed when the batch ends, and what is to
 * become of them is written as the outcomes of other jobs are. So is one whose handler takes long: the batch ends without it.
 *
 * <p>Run by the thread of its {@code DirectLoop}; {@code SlowDirectHandlers} may end it meanwhile.
 */
final class DirectBatch {

    private static final Logger log = LoggerFactory.getLogger(DirectBatch.class);

    /** A transaction that is open for longer leaves the others what finished jobs have left. */
    private static final long BATCH_NANOS = Duration.ofMillis(50).toNanos();

    /** A handler that takes longer goes on without its batch. */
    private static final long SLOW_HANDLER_NANOS = Duration.ofMillis(100).toNanos();

    private final DirectContext context;
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

    /** How many have been started, and how long these took in all. */
    private int started;

    private long nanos;

    /** Creates a batch of the session's transaction, on the thread that is to run it. */
    DirectBatch(DirectContext context, DirectStore.Session session) {
        this.context = context;
        this.session = session;
    }

    /**
     * Runs jobs one after the other for as long as a batch may last.
     *
     * @param isStopping tells whether no further one is to start
     */
    void run(List<Taken> taken, BooleanSupplier isStopping) {
        long begin = System.nanoTime();
        context.others().watch();
        try {
            for (Taken one : taken) {
                if (nanos >= BATCH_NANOS || isStopping.getAsBoolean() || !mayStart(one)) {
                    break;
                }
                started++;
                begin(one);
                context.executor().runDirect(one.job(), () -> isOwned(one), end -> ended(one, end));
                nanos = System.nanoTime() - begin;
                if (released) {
                    break;
                }
            }
        } finally {
            if (released) {
                context.tasks().goesOn();
            }
        }
    }

    /** What has been paused since it was taken is left free. */
    private boolean mayStart(Taken next) {
        return context.permission().ownership().mayStart()
                && session.isOpen()
                && context.permission().tasks().mayStart(next.job());
    }

    /** Returns how many of the jobs have been started. */
    int started() {
        return started;
    }

    /** Returns how many jobs such a batch has time for, at the rate at which this one went. */
    long mostInTime() {
        return BATCH_NANOS / Math.max(1, nanos / Math.max(1, started));
    }

    private synchronized void begin(Taken one) {
        running = one;
        begunAt = System.nanoTime();
    }

    private synchronized void ended(Taken one, EncodedOutcome end) {
        running = null;
        if (released && failure == null) {
            context.executor().ended(end);
            return;
        }
        ended.add(end);
        (end.outcome() instanceof JobOutcome.Success ? done : others).add(one);
    }

    private boolean isOwned(Taken one) {
        if (!Thread.currentThread().equals(thread)) {
            return released ? context.permission().ownership().holds(one.job()) : session.isOpen();
        }
        synchronized (this) {
            if (!released) {
                return session.holds();
            }
            return failure == null && context.permission().ownership().holds(one.job());
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
        context.tasks().isHeldUp();
    }

    /** Ends the transaction, unless it has been ended while a handler ran that takes long. */
    synchronized void end() throws SQLException {
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
        boolean deleted = context.tracker().during(() -> commit(slow));
        if (!deleted) {
            context.tasks().suspend(new SQLException("A job that has succeeded could not be deleted"));
            return;
        }
        context.executor().settledElsewhere(done.size());
        for (Taken one : done) {
            log.debug("{} succeeded", one.job());
            context.publish(() -> new WorkerEvent.JobCompleted(context.workerId(), one.job()));
        }
    }

    /** Returns whether those that have succeeded are deleted. */
    private synchronized boolean commit(@Nullable Taken slow) throws SQLException {
        List<Taken> claimed = new ArrayList<>(others);
        if (slow != null) {
            claimed.add(slow);
        }
        boolean deleted = session.end(done, claimed, runs());
        List<EncodedOutcome> toWrite = new ArrayList<>(ended);
        if (deleted) {
            toWrite.removeIf(end -> end.outcome() instanceof JobOutcome.Success);
        }
        context.executor().takeOver(toWrite, slow == null ? null : slow.job());
        return deleted;
    }

    private synchronized Map<Long, RunRecord> runs() {
        Map<Long, RunRecord> runs = new HashMap<>();
        for (EncodedOutcome end : ended) {
            if (end.run() != null && end.outcome() instanceof JobOutcome.Success) {
                runs.put(end.job().id(), end.run());
            }
        }
        return runs;
    }

    /** Whether the batch has been committed may be unknown. If not, its jobs are free, and count an attempt the next time. */
    synchronized void leaveToOthers() {
        if (ended.isEmpty()) {
            return;
        }
        List<Job> started = ended.stream().map(EncodedOutcome::job).toList();
        log.warn(
                "A direct batch of {} jobs failed; those that have not been deleted run again, the first of them {}",
                started.size(),
                started.get(0));
        context.rest().addSuspects(started.stream().map(Job::id).toList());
        started.forEach(job -> context.publish(() -> new WorkerEvent.JobLost(context.workerId(), job)));
    }
}
