package dev.pgworker.engine;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;

/**
 * The jobs that this worker has claimed, from the claim until their outcome is written, and the slots they occupy.
 *
 * <p>It also counts the runners, the tasks on the handler executor that take jobs from here one after the other: a
 * runner signs off in the same step in which it finds nothing, so that a job added next always finds or starts one.
 * Safe for use by many threads.
 */
public final class LocalQueue {

    private final int concurrency;

    @GuardedBy("this") private final ArrayDeque<Job> waiting = new ArrayDeque<>();

    @GuardedBy("this") private int runners;

    /** Ids of the jobs that occupy slots. */
    @GuardedBy("this") private final Set<Long> unsettled = new HashSet<>();

    @GuardedBy("this") private long settledInTotal;

    @GuardedBy("this") private boolean closed;

    /** Creates an empty queue with this many slots. */
    public LocalQueue(int concurrency) {
        this.concurrency = concurrency;
    }

    /** Returns how many jobs may be claimed. */
    public synchronized int free() {
        return closed ? 0 : Math.max(0, concurrency - unsettled.size());
    }

    /**
     * Takes claimed jobs in.
     *
     * @return how many runners to start, or -1 if the queue is closed and the jobs are to be given back; they occupy
     *     slots in either case
     */
    synchronized int add(List<Job> jobs) {
        for (Job job : jobs) {
            unsettled.add(job.id());
        }
        if (closed) {
            return -1;
        }
        waiting.addAll(jobs);
        return missingRunners();
    }

    /** Signs on as many runners as the waiting jobs need and the concurrency allows; returns how many to start. */
    synchronized int missingRunners() {
        int missing = Math.max(0, Math.min(waiting.size(), concurrency - runners));
        runners += missing;
        return missing;
    }

    /** Returns the next job for a runner, or null after having signed the runner off. */
    synchronized @Nullable Job next() {
        Job job = waiting.poll();
        if (job == null) {
            signOff();
        }
        return job;
    }

    /** Signs a runner off that could not be started. */
    synchronized void signOff() {
        runners--;
        if (runners == 0) {
            notifyAll();
        }
    }

    /** Signs off a runner that is stuck; returns true if another one has been signed on and is to be started. */
    synchronized boolean replaceRunner() {
        if (waiting.isEmpty()) {
            signOff();
            return false;
        }
        return true;
    }

    /** Waits until no handler runs; returns whether that is so. Meaningful once the queue is closed. */
    synchronized boolean awaitNoRunners(Duration limit) throws InterruptedException {
        long deadline = System.nanoTime() + limit.toNanos();
        while (runners > 0) {
            long left = deadline - System.nanoTime();
            if (left <= 0) {
                return false;
            }
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
        return true;
    }

    /** Returns true if the job occupies a slot. */
    synchronized boolean contains(long id) {
        return unsettled.contains(id);
    }

    /** Frees the slots of jobs whose outcome is written. */
    synchronized void settled(Collection<Long> ids) {
        for (Long id : ids) {
            unsettled.remove(id);
        }
        settledInTotal += ids.size();
        notifyAll();
    }

    /** Lets no further job start and returns those that have not started. */
    synchronized List<Job> close() {
        closed = true;
        List<Job> unstarted = new ArrayList<>(waiting);
        waiting.clear();
        return unstarted;
    }

    /** Returns true if there is no claimed job whose outcome is still to be written. */
    public synchronized boolean isIdle() {
        return unsettled.isEmpty();
    }

    /** Waits until the outcome of every claimed job is written; returns whether that is so. */
    synchronized boolean awaitIdle(Duration limit) throws InterruptedException {
        long deadline = System.nanoTime() + limit.toNanos();
        while (!unsettled.isEmpty()) {
            long left = deadline - System.nanoTime();
            if (left <= 0) {
                return false;
            }
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
        return true;
    }

    /** Returns how many jobs have been settled since the start. */
    public synchronized long settledInTotal() {
        return settledInTotal;
    }

    /** Waits until a job is settled that was not when the given total was read. */
    public synchronized void awaitSettledBeyond(long total) throws InterruptedException {
        while (settledInTotal == total) {
            wait();
        }
    }
}
