package dev.pgworker.internal.engine.direct;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.BooleanSupplier;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.engine.run.EncodedOutcome;
import dev.pgworker.internal.engine.run.JobOutcome;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.store.ClaimedJob;
import dev.pgworker.internal.store.DirectStore;
import dev.pgworker.internal.store.RunRecord;
import dev.pgworker.job.Job;

/**
 * Jobs of direct tasks that are locked, run and deleted in one transaction. It lasts about {@link #BATCH_NANOS}; what has not run by
 * then is free again without having been written. Jobs that do not succeed are claimed when the batch ends, and what is to
 * become of them is written as the outcomes of other jobs are. So is one whose handler takes long: the batch ends without it.
 *
 * <p>Run by the thread of its {@link DirectLoop}; {@code worker-direct-watch} may end it meanwhile.
 */
final class DirectBatch {

    private static final Logger log = WorkerLog.of(DirectBatch.class);

    /** A transaction that is open for longer leaves the others what finished jobs have left. */
    private static final long BATCH_NANOS = Duration.ofMillis(50).toNanos();

    /** A handler that takes longer continues without its batch. */
    private static final long SLOW_HANDLER_NANOS = Duration.ofMillis(100).toNanos();

    private final DirectContext context;
    private final DirectStore.Session session;
    private final List<ClaimedJob> taken;
    private final Thread thread = Thread.currentThread();

    // While handlers run the batch may be ended by another thread.
    @GuardedBy("this") private final Map<ClaimedJob, EncodedOutcome> ended = new LinkedHashMap<>();

    /** How many have been started. */
    @GuardedBy("this") private int started;

    /** Whose handler runs. */
    @GuardedBy("this") private @Nullable ClaimedJob running;

    @GuardedBy("this") private long begunAt;

    /** Whether the batch has ended without the job that runs, which is claimed since, unless the session has broken. */
    @GuardedBy("this") private boolean released;

    /** What went wrong when it was to end so. */
    @GuardedBy("this") private @Nullable Throwable failure;

    private long nanos;

    /** Creates a batch of these jobs, which the session's transaction has locked, on the thread that is to run it. */
    DirectBatch(DirectContext context, DirectStore.Session session, List<ClaimedJob> taken) {
        this.context = context;
        this.session = session;
        this.taken = taken;
    }

    /**
     * Runs jobs one after the other for as long as a batch may last.
     *
     * @param isStopping returns whether no further one is to start
     */
    void run(BooleanSupplier isStopping) {
        long begin = System.nanoTime();
        try {
            for (ClaimedJob one : taken) {
                if (nanos >= BATCH_NANOS || isStopping.getAsBoolean() || !mayStart(one.job())) {
                    break;
                }
                begin(one);
                context.executor().runDirect(one.job(), () -> isOwned(one.job()), end -> ended(one, end));
                nanos = System.nanoTime() - begin;
            }
        } finally {
            if (isReleased()) {
                context.tasks().goesOn();
            }
        }
    }

    /** What has been paused since it was taken is left free, and so is all that is left when the batch has ended. */
    private boolean mayStart(Job next) {
        return session.isOpen()
                && context.permission().ownership().mayStart()
                && context.permission().tasks().mayStart(next);
    }

    /** Returns how many of the jobs have been started. */
    synchronized int started() {
        return started;
    }

    /** Returns how many jobs such a batch has time for, at the rate at which this one went. */
    long mostInTime() {
        return BATCH_NANOS / Math.max(1, nanos / Math.max(1, started()));
    }

    private synchronized boolean isReleased() {
        return released;
    }

    private synchronized void begin(ClaimedJob one) {
        started++;
        running = one;
        begunAt = System.nanoTime();
    }

    private synchronized void ended(ClaimedJob one, EncodedOutcome end) {
        running = null;
        if (released && !session.isBroken()) {
            context.executor().ended(end);
        } else {
            ended.put(one, end);
        }
    }

    private boolean isOwned(Job job) {
        synchronized (this) {
            if (!released) {
                return Thread.currentThread().equals(thread) ? session.holds() : session.isOpen();
            }
        }
        return !session.isBroken() && context.permission().ownership().holds(job);
    }

    /** Ends the batch without the handler that runs if that takes long. Asks the database; holds up a handler that ends meanwhile. */
    synchronized void releaseSlow() {
        if (running == null || released || !session.isOpen() || System.nanoTime() - begunAt < SLOW_HANDLER_NANOS) {
            return;
        }
        released = true;
        log.debug("{} takes long; its batch ends without it", running.job());
        context.tasks().isHeldUp();
        try {
            write(running);
        } catch (SQLException | RuntimeException | Error e) {
            failure = e;
            session.close();
        }
    }

    /** Ends the transaction, unless it has been ended while a handler ran that takes long. */
    synchronized void end() throws SQLException {
        if (!released) {
            write(null);
        } else if (failure != null) {
            throw new SQLException("A direct batch could not end before a handler did", failure);
        }
    }

    /** Ends the batch; a job that still runs is claimed. */
    private synchronized void write(@Nullable ClaimedJob slow) throws SQLException {
        List<ClaimedJob> done = new ArrayList<>();
        List<ClaimedJob> others = new ArrayList<>();
        List<EncodedOutcome> outcomes = new ArrayList<>(ended.values());
        Map<Long, RunRecord> runs = new LinkedHashMap<>();
        ended.forEach((one, end) -> {
            (isSuccess(end) ? done : others).add(one);
            if (isSuccess(end) && end.run() != null) {
                runs.put(one.job().id(), Objects.requireNonNull(end.run()));
            }
        });
        if (slow != null) {
            others.add(slow);
        }
        boolean deleted = context.tracker().during(() -> {
            boolean all = session.end(done, others, runs);
            outcomes.removeIf(end -> all && isSuccess(end));
            context.executor().takeOver(outcomes, slow == null ? null : slow.job());
            return all;
        });
        context.due().freed(taken.subList(started, taken.size()));
        if (!deleted) {
            context.tasks().suspend(new SQLException("A job that has succeeded could not be deleted"));
            return;
        }
        context.executor().settledElsewhere(done.size());
        for (ClaimedJob one : done) {
            log.debug("{} succeeded", one.job());
            context.publish(id -> new WorkerEvent.JobCompleted(id, one.job()));
        }
    }

    private static boolean isSuccess(EncodedOutcome end) {
        return end.outcome() instanceof JobOutcome.Success;
    }

    /** Whether the batch has been committed may be unknown. If not, its jobs are free, and count an attempt the next time. */
    synchronized void leaveToOthers() {
        ended.keySet().stream()
                .findFirst()
                .ifPresent(first -> log.warn(
                        "A direct batch of {} jobs failed; those that have not been deleted run again, the first of them {}",
                        ended.size(),
                        first.job()));
        ended.keySet().forEach(one -> context.publish(id -> new WorkerEvent.JobLost(id, one.job())));
    }
}
