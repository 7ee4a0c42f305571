package dev.pgworker.internal.store;

import org.jspecify.annotations.Nullable;

/**
 * Where a claim looks for queues with due jobs first. If it is not filled by those it finds there, it looks at all.
 *
 * @param queues in how many queues to look at least; 0 where that is not known
 * @param priority that of the first job of a queue that the last claim brought, if it was full, otherwise null; the only one to look
 *     at if there is a place
 * @param place where to begin; null for the first job of all
 */
public record QueueFront(
        int queues, @Nullable Integer priority, @Nullable IndexPosition place) {

    /** For a claim that is to find out. */
    public static final QueueFront UNKNOWN = new QueueFront(0, null, null);
}
