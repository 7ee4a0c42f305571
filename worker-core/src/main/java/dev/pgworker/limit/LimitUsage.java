package dev.pgworker.limit;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * How much of a limit one value of its field uses.
 *
 * @param value the value as text; {@code ""} for a limit without a field, and for jobs that lack it. One of more than 100
 *     characters is cut and ends with a hash
 * @param used number of jobs that run, for a limit of concurrency; 0 for others
 * @param waiting number of jobs that wait, or will when they are due, counted up to 10,000
 * @param tokens for a limit of a rate, how many jobs may start now; null for a limit of concurrency
 * @param nextStart for a limit of a rate, when the next job may start, if none may now; null otherwise
 * @since 0.1.0
 */
public record LimitUsage(
        String value,
        long used,
        long waiting,
        @Nullable Double tokens,
        @Nullable Instant nextStart) {}
