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

    private static final Logger log = LoggerFactory.getLogger(DirectBatch.class);

    /** A transaction that is open for longer leaves the others what finished jobs have left. */
    private static final long BATCH_NANOS = Duration.ofMillis(50).toNanos();

    /** A handler that takes longer goes on without its batch. */
    private static final long SLOW_HANDLER_NANOS = Duration.ofMillis(100).toNanos();

    private final DirectChains chains;
    private final DirectStore.Session session;
    private final List<ClaimedJob> taken;
    private final Thread thread = Thread.currentThread();

    // While handlers run the batch may be ended by another thread.
    @GuardedBy("this") private final List<ClaimedJob> done = new ArrayList<>();

    @GuardedBy("this") private final List<ClaimedJob> others = new ArrayList<>();

    @GuardedBy("this") private final List<EncodedOutcome> ended = new ArrayList<>();

    /** How many have been started. */
    @GuardedBy("this") private int started;

    /** Whose handler runs. */
    @GuardedBy("this") private @Nullable ClaimedJob running;

    @GuardedBy("this") private long begunAt;

    /** Whether the batch has ended without the job that runs, which is claimed since. */
    @GuardedBy("this") private boolean released;

    /** What went wrong when it was to end so. */
    @GuardedBy("this") private @Nullable Throwable failure;

    private long nanos;

    /** Creates a batch of these jobs, which the session's transaction has locked, on the thread that is to run it. */
    DirectBatch(DirectChains chains, DirectStore.Session session, List<ClaimedJob> taken) {
        this.chains = chains;
        this.session = session;
        this.taken = taken;
    }

    /**
     * Runs jobs one after the other for as long as a batch may last.
     *
     * @param isStopping tells whether no further one is to start
     */
    void run(BooleanSupplier isStopping) {
        long begin = System.nanoTime();
        try {
            for (ClaimedJob one : taken) {
                if (nanos >= BATCH_NANOS || isStopping.getAsBoolean() || !mayStart(one.job())) {
                    break;
                }
                begin(one);
                chains.executor.runDirect(one.job(), () -> isOwned(one.job()), end -> ended(one, end));
                nanos = System.nanoTime() - begin;
            }
        } finally {
            if (isReleased()) {
                chains.tasks().goesOn();
            }
        }
    }

    /** What has been paused since it was taken is left free, and so is all that is left when the batch has ended. */
    private boolean mayStart(Job next) {
        return session.isOpen()
                && chains.permission.ownership().mayStart()
                && chains.permission.tasks().mayStart(next);
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
        if (released && failure == null) {
            chains.executor.ended(end);
            return;
        }
        ended.add(end);
        (end.outcome() instanceof JobOutcome.Success ? done : others).add(one);
    }

    private boolean isOwned(Job job) {
        synchronized (this) {
            if (!released) {
                return Thread.currentThread().equals(thread) ? session.holds() : session.isOpen();
            } else if (failure != null) {
                return false;
            }
        }
        return chains.permission.ownership().holds(job);
    }

    /** Ends the batch without the handler that runs if that takes long. Asks the database; holds up a handler that ends meanwhile. */
    synchronized void releaseSlow() {
        ClaimedJob slow = running;
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
        chains.tasks().isHeldUp();
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
        List<ClaimedJob> deletable = List.copyOf(done);
        List<ClaimedJob> claimed = new ArrayList<>(others);
        if (slow != null) {
            claimed.add(slow);
        }
        List<EncodedOutcome> toWrite = new ArrayList<>(ended);
        Map<Long, RunRecord> runs = new HashMap<>();
        for (EncodedOutcome end : ended) {
            if (end.run() != null && end.outcome() instanceof JobOutcome.Success) {
                runs.put(end.job().id(), end.run());
            }
        }
        boolean deleted = chains.tracker.during(() -> {
            boolean all = session.end(deletable, claimed, runs);
            toWrite.removeIf(end -> all && end.outcome() instanceof JobOutcome.Success);
            chains.executor.takeOver(toWrite, slow == null ? null : slow.job());
            return all;
        });
        chains.due.freed(taken.subList(started, taken.size()));
        if (!deleted) {
            chains.tasks().suspend(new SQLException("A job that has succeeded could not be deleted"));
            return;
        }
        chains.executor.settledElsewhere(deletable.size());
        for (ClaimedJob one : deletable) {
            log.debug("{} succeeded", one.job());
            chains.publish(id -> new WorkerEvent.JobCompleted(id, one.job()));
        }
    }

    /** Whether the batch has been committed may be unknown. If not, its jobs are free, and count an attempt the next time. */
    synchronized void leaveToOthers() {
        if (ended.isEmpty()) {
            return;
        }
        List<Job> lost = ended.stream().map(EncodedOutcome::job).toList();
        log.warn(
                "A direct batch of {} jobs failed; those that have not been deleted run again, the first of them {}",
                lost.size(),
                lost.get(0));
        chains.rest.addSuspects(lost.stream().map(Job::id).toList());
        lost.forEach(job -> chains.publish(id -> new WorkerEvent.JobLost(id, job)));
    }
}
