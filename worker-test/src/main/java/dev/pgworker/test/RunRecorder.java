package dev.pgworker.test;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;

import org.jspecify.annotations.Nullable;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.Job;
import dev.pgworker.test.JobRun.Outcome;

/** Remembers how the attempts of a worker ended. A direct listener, so that it misses none. Safe for use by many threads. */
final class RunRecorder implements WorkerEventListener {

    private final Lock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();

    // All guarded by the lock.
    private final List<JobRun> runs = new ArrayList<>();
    private final Map<Long, Job> running = new LinkedHashMap<>();
    private long total;

    @Override
    public void onEvent(WorkerEvent event) {
        lock.lock();
        try {
            record(event);
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    private void record(WorkerEvent event) {
        if (event instanceof WorkerEvent.JobStarted begun) {
            running.put(begun.job().id(), begun.job());
        } else if (event instanceof WorkerEvent.JobCompleted completed) {
            add(completed.job(), Outcome.COMPLETED, null);
        } else if (event instanceof WorkerEvent.JobFailed failed) {
            add(failed.job(), failed.permanently() ? Outcome.FAILED : Outcome.RETRYING, failed.error());
        } else if (event instanceof WorkerEvent.JobSnoozed snoozed) {
            add(snoozed.job(), Outcome.SNOOZED, null);
        } else if (event instanceof WorkerEvent.JobReturned returned) {
            if (returned.started()) {
                add(returned.job(), Outcome.RETURNED, null);
            }
        } else if (event instanceof WorkerEvent.JobSuperseded superseded) {
            add(superseded.job(), Outcome.SUPERSEDED, null);
        } else if (event instanceof WorkerEvent.JobCancelled cancelled) {
            add(cancelled.job(), Outcome.CANCELLED, null);
        } else if (event instanceof WorkerEvent.JobLost lost) {
            add(lost.job(), Outcome.LOST, null);
        }
    }

    private void add(Job job, Outcome outcome, @Nullable Throwable error) {
        running.remove(job.id());
        runs.add(new JobRun(job, outcome, error, null));
        total++;
    }

    /** Forgets the runs that have ended. */
    void clear() {
        lock.lock();
        try {
            runs.clear();
        } finally {
            lock.unlock();
        }
    }

    /** Returns how many runs have ended, forgotten ones included. */
    long total() {
        lock.lock();
        try {
            return total;
        } finally {
            lock.unlock();
        }
    }

    /** Returns the runs that have ended. */
    List<JobRun> runs() {
        lock.lock();
        try {
            return List.copyOf(runs);
        } finally {
            lock.unlock();
        }
    }

    /** Returns the jobs whose handlers have been called and have not ended. */
    List<Job> running() {
        lock.lock();
        try {
            return List.copyOf(running.values());
        } finally {
            lock.unlock();
        }
    }

    /**
     * Waits for a condition, which is looked at after each event.
     *
     * @param nanos how long to wait at most
     * @return false if the time is over
     */
    boolean await(BooleanSupplier condition, long nanos) throws InterruptedException {
        lock.lock();
        try {
            long left = nanos;
            while (!condition.getAsBoolean()) {
                if (left <= 0) {
                    return false;
                }
                left = changed.awaitNanos(left);
            }
            return true;
        } finally {
            lock.unlock();
        }
    }
}
