package dev.pgworker.limit;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * How much of a limit one value of its field uses.
 *
 * @param value the value as text; {@code ""} for a limit without a field, and for jobs that lack it. One of more than 200
 *     characters is cut and ends with a hash
 * @param used number of jobs that hold a permit, because they run or are about to start; 0 for a limit of a rate
 * @param waiting number of jobs that wait, counted up to 10,000, those whose time has not come not included
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
