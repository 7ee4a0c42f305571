package dev.pgworker.internal.engine.claim;

import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.LongSupplier;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.internal.store.IndexPosition;
import dev.pgworker.internal.store.QueueFront;
import dev.pgworker.job.Job;

/**
 * In how many queues the next claim looks for jobs, and from where on. Where handlers are fast, a claim expects to be filled by runs of
 * jobs of a few queues, and looks in many only when that fails; after a claim that brought few jobs of each queue the next ones
 * look in as many at once as that took. What finished jobs left in the index lies before the jobs of a full claim: for a moment, and until
 * other jobs are announced, the next ones begin there.
 *
 * <p>Each chain of claims owns one.
 */
final class ClaimFront {

    private static final int SHORT_RUN = 8;
    private static final int CLAIMS = 16;

    /** Some queues have fewer jobs than the others, or are taken by somebody. */
    private static final double MARGIN = 1.25;

    /** So long at most a job waits that was not announced. */
    private static final long MOMENT_NANOS = Duration.ofMillis(200).toNanos();

    /** Another number whenever jobs may have come to lie anywhere. */
    private final LongSupplier news;

    private int broadClaims;

    /** How many queues it takes for each job. */
    private double queuesPerJob;

    /** The first job of a queue that the last claim brought, if it was full. */
    private @Nullable Job first;

    /** When a claim last looked at the first job of all, by {@link System#nanoTime}. */
    private long lookedAt;

    private long newsThen;

    /**
     * Creates one that knows nothing.
     *
     * @param news another number whenever jobs may have come to lie anywhere
     */
    ClaimFront(LongSupplier news) {
        this.news = news;
    }

    /**
     * Returns where the next claim looks first.
     *
     * @param wanted how many jobs it asks for
     */
    QueueFront next(int wanted) {
        int queues = broadClaims > 0 ? (int) Math.ceil(wanted * queuesPerJob * MARGIN) : 0;
        long time = System.nanoTime();
        long newsNow = news.getAsLong();
        @Nullable Job begin = first;
        if (begin == null || newsNow != newsThen || time - lookedAt >= MOMENT_NANOS) {
            lookedAt = time;
            newsThen = newsNow;
            return new QueueFront(queues, begin == null ? null : begin.priority(), null);
        }
        return new QueueFront(queues, begin.priority(), new IndexPosition(begin.runAt(), begin.id()));
    }

    /**
     * Takes note of a claim that looked as {@link #next} said.
     *
     * @param jobs what it returned, in the order in which they start
     * @param wanted how many it asked for; where it brought less although there are more, how many it brought
     */
    void claimed(List<Job> jobs, int wanted) {
        int queued = 0;
        Set<String> queues = new HashSet<>();
        @Nullable Job firstQueued = null;
        for (Job job : jobs) {
            if (job.queueName() != null) {
                firstQueued = firstQueued == null ? job : firstQueued;
                queued++;
                queues.add(job.queueName());
            }
        }
        boolean full = jobs.size() == wanted;
        first = full && firstQueued != null && Timestamps.storable(firstQueued.runAt()) ? firstQueued : null;
        if (broadClaims > 0) {
            broadClaims--;
        } else if (full && queued > 0 && queued < SHORT_RUN * queues.size()) {
            broadClaims = CLAIMS;
            queuesPerJob = queues.size() / (double) jobs.size();
        }
    }
}
