package dev.pgworker.job;

import java.time.Duration;

import org.jspecify.annotations.Nullable;

/**
 * The jobs that are not running, by state, determined at a cost that does not depend on the number of jobs.
 *
 * @param ready see {@link JobState#READY}
 * @param scheduled see {@link JobState#SCHEDULED}
 * @param retrying see {@link JobState#RETRYING}; where numbers are estimated, the number among the first 10,000 jobs
 *     that are due later
 * @param limited see {@link JobState#LIMITED}; of more than 10,000 jobs that wait for limits, or will, the number among the
 *     first 10,000
 * @param failed see {@link JobState#FAILED}
 * @param oldestDue how long the job that has been ready for the longest time has been due; null if no job is ready
 * @param workers number of registered workers that have sent a heartbeat within the last five minutes
 * @param estimated whether numbers above 10,000 are estimates
 * @since 0.1.0
 */
public record JobBacklog(
        long ready,
        long scheduled,
        long retrying,
        long limited,
        long failed,
        @Nullable Duration oldestDue,
        long workers,
        boolean estimated) {}
