package dev.pgworker.internal.store;

import java.util.Collection;

import org.jspecify.annotations.Nullable;

/**
 * What a completion does beside deleting the jobs: it claims the next jobs of their queues as the lanes say, and frees the
 * queues that do not go on.
 *
 * @param mostBytes as in {@link ClaimRequest}
 * @param forbidden as in {@link ClaimRequest}
 * @param queueStart as in {@link ClaimRequest}
 */
public record FollowUp(
        TaskIds tasks,
        LanePlan lanes,
        long mostBytes,
        Collection<String> forbidden,
        @Nullable QueueStart queueStart) {

    /** Looks at all jobs. */
    public FollowUp(TaskIds tasks, LanePlan lanes, long mostBytes, Collection<String> forbidden) {
        this(tasks, lanes, mostBytes, forbidden, null);
    }
}
