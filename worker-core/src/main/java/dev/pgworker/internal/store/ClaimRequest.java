package dev.pgworker.internal.store;

import java.util.Collection;
import java.util.List;
import java.util.function.ToIntFunction;

import org.jspecify.annotations.Nullable;

/**
 * What a claim looks for.
 *
 * @param wanted how many jobs at most
 * @param mostBytes how many bytes their payloads may have together; a single job may have more
 * @param forbidden flags whose jobs are passed over
 * @param runs how many jobs to take of a queue whose first job is of a task with this identifier
 * @param front where to look for queues first
 * @param start where to look for jobs without a queue; null to look at all
 * @param chain which jobs to look at
 * @param queueStart where to look for jobs of queues; null to look at all
 */
public record ClaimRequest(
        int wanted,
        long mostBytes,
        Collection<String> forbidden,
        ToIntFunction<String> runs,
        QueueFront front,
        @Nullable ClaimStart start,
        Chain chain,
        @Nullable QueueStart queueStart) {

    /** Asks for jobs of queues wherever they are. */
    public ClaimRequest(
            int wanted,
            long mostBytes,
            Collection<String> forbidden,
            ToIntFunction<String> runs,
            QueueFront front,
            @Nullable ClaimStart start,
            Chain chain) {
        this(wanted, mostBytes, forbidden, runs, front, start, chain, null);
    }

    /** Asks for so many jobs of any size, one of a queue. */
    public static ClaimRequest of(int wanted) {
        return new ClaimRequest(wanted, Long.MAX_VALUE, List.of(), task -> 1, QueueFront.UNKNOWN, null, Chain.WHOLE);
    }
}
