package dev.pgworker.job;

import java.time.Duration;

import org.jspecify.annotations.Nullable;

/**
 * What there is to do, as one look tells that costs the same whatever the number of jobs. Jobs that run are not among
 * them.
 *
 * @param ready see {@link JobState#READY}
 * @param scheduled see {@link JobState#SCHEDULED}
 * @param retrying see {@link JobState#RETRYING}; where numbers are estimated, those among the first 10,000 of the jobs that
 *     are due later
 * @param failed see {@link JobState#FAILED}
 * @param oldestDue since when the job that has been ready for the longest time is due; null if none is ready
 * @param workers how many workers are registered and have given a sign of life in the last five minutes
 * @param estimated whether a number above 10,000 is an estimate
 * @since 0.1.0
 */
public record JobBacklog(
        long ready,
        long scheduled,
        long retrying,
        long failed,
        @Nullable Duration oldestDue,
        long workers,
        boolean estimated) {}
