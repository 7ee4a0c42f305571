package dev.pgworker.job;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * A named queue, whose jobs run one at a time.
 *
 * @param name its name
 * @param waiting how many of its jobs have attempts left and do not run
 * @param lockedAt since when one of its jobs runs, or null
 * @param lockedBy the worker that runs it, or null
 * @since 0.1.0
 */
public record NamedQueue(
        String name,
        long waiting,
        @Nullable Instant lockedAt,
        @Nullable String lockedBy) {}
