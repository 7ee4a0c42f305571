package dev.pgworker.statistics;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * What happened in an interval, and how the backlog stood at its end.
 *
 * @param from when the interval begins
 * @param succeeded number of jobs that succeeded
 * @param retried number of attempts that failed and are retried
 * @param failed number of jobs that failed permanently
 * @param run how long handlers ran; null if none did
 * @param waited how long jobs waited beyond their time; null if none started
 * @param backlog the backlog at the end of the interval; null if it was not sampled
 * @since 0.1.0
 */
public record StatisticsPoint(
        Instant from,
        long succeeded,
        long retried,
        long failed,
        @Nullable Quantiles run,
        @Nullable Quantiles waited,
        @Nullable BacklogSample backlog) {}
