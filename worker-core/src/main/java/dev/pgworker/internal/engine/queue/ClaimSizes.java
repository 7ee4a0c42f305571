package dev.pgworker.internal.engine.queue;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;

import dev.pgworker.internal.engine.queue.Unit.LocalJob;
import dev.pgworker.internal.store.ClaimedJob;

/**
 * What has been learned about how many jobs to claim: how long handlers take, and how many jobs queues have. Guarded by the
 * {@link LocalQueue} that it belongs to.
 */
final class ClaimSizes {

    /** So long the number of queues with due jobs is taken for known. */
    private static final long KNOWN_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** How many jobs a claim takes of each queue at least, if they are fast. */
    private static final int LEAST_SHARE = 12;

    private final int concurrency;
    private final int mostAhead;
    private final int longestRun;
    private final Pace pace = new Pace();
    private final Map<String, Pace> paceOfTask = new HashMap<>();
    private int share = LEAST_SHARE;

    /** Of how many queues the last claim of queues took jobs, if it had room for more; very many if it had none. */
    private int dueQueues = Integer.MAX_VALUE;

    /** When that was, by {@link System#nanoTime}. */
    private long claimedAt = System.nanoTime();

    ClaimSizes(int concurrency, int mostAhead, int longestRun) {
        this.concurrency = concurrency;
        this.mostAhead = mostAhead;
        this.longestRun = longestRun;
    }

    /** Takes note of how long a job took. */
    void ran(LocalJob local, long nanos) {
        pace.ran(nanos);
        if (local.unit.queueId != 0) {
            paceOfTask
                    .computeIfAbsent(local.job.taskIdentifier(), task -> new Pace())
                    .ran(nanos);
        }
    }

    /** Takes note of a job that has waited too long: handlers take longer than they did. */
    void doubt(LocalJob local) {
        pace.doubt();
        Pace ofTask = paceOfTask.get(local.job.taskIdentifier());
        if (ofTask != null) {
            ofTask.doubt();
        }
    }

    /** Returns how many jobs may wait for a handler. */
    int ahead() {
        return pace.jobs(concurrency, Pace.AHEAD_NANOS, mostAhead);
    }

    /** Returns how many jobs of a queue to claim together if the first is of this task, so that as many handlers as there are queues have something to do. */
    int runOf(String taskIdentifier, int wanted, int handlers) {
        Pace ofTask = paceOfTask.get(taskIdentifier);
        if (ofTask == null) {
            return 1;
        }
        int run = ofTask.jobs(1, Pace.RUN_NANOS, longestRun);
        boolean known = System.nanoTime() - claimedAt < KNOWN_NANOS;
        int shares = known ? Math.min(handlers, dueQueues) : handlers;
        return Math.max(1, Math.min(run, (wanted + shares - 1) / shares));
    }

    /** Returns how many jobs of a queue a claim takes at most, as long as other queues have jobs. */
    int share() {
        return share;
    }

    /**
     * Learns from a claim whether shares of that size fill claims: with a few long queues more is taken of each.
     *
     * @return the queues that it has taken
     */
    Set<Integer> claimed(Iterable<ClaimedJob> jobs, boolean full) {
        int queued = 0;
        Set<Integer> queues = new HashSet<>();
        for (ClaimedJob one : jobs) {
            if (one.queueId() != 0) {
                queued++;
                queues.add(one.queueId());
            }
        }
        if (queued > 0) {
            dueQueues = full ? Integer.MAX_VALUE : queues.size();
            claimedAt = System.nanoTime();
        }
        if (queued > 0 && full) {
            share = Math.max(LEAST_SHARE, share / 2);
        } else if (queued > 0 && queued >= share * queues.size()) {
            share = Math.min(longestRun, share * 2);
        }
        return queues;
    }
}
