package dev.pgworker.statistics;

import java.time.Duration;

import org.jspecify.annotations.Nullable;

/**
 * How many jobs there were at a moment.
 *
 * @param ready due jobs that did not run
 * @param scheduled jobs that were due in the future
 * @param retrying failed jobs that were to be retried in the future
 * @param failed permanently failed jobs
 * @param oldestDue how long the oldest ready job had been due; null if none was
 * @param workers number of registered workers with a recent heartbeat
 * @since 0.1.0
 */
public record BacklogSample(
        long ready,
        long scheduled,
        long retrying,
        long failed,
        @Nullable Duration oldestDue,
        long workers) {}
