package dev.pgworker.job;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * A named queue, whose jobs run one at a time.
 *
 * @param name the name of the queue
 * @param waiting number of its jobs that have attempts left and are not running, counted up to 1,000
 * @param more whether there are more than these
 * @param lockedAt since when one of its jobs has been running, or null if none is
 * @param lockedBy the id of the worker that runs the job, or null if none does
 * @param pause that it is paused, which hides since when and where one of its jobs may still be running; null if it is not
 * @since 0.1.0
 */
public record NamedQueue(
        String name,
        long waiting,
        boolean more,
        @Nullable Instant lockedAt,
        @Nullable String lockedBy,
        @Nullable Pause pause) {}
