package dev.pgworker.statistics;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * What happened to the jobs of a task.
 *
 * @param taskIdentifier the name of the task
 * @param succeeded number of jobs that succeeded
 * @param retried number of attempts that failed and are retried
 * @param failed number of jobs that failed permanently
 * @param run how long the handler ran; null if it did not
 * @param waited how long jobs waited beyond their time; null if none started
 * @param lastEndedAt the minute in which a run ended last; null if none did
 * @since 0.1.0
 */
public record TaskStatistics(
        String taskIdentifier,
        long succeeded,
        long retried,
        long failed,
        @Nullable Quantiles run,
        @Nullable Quantiles waited,
        @Nullable Instant lastEndedAt) {}
