package dev.pgworker.job;

import org.jspecify.annotations.Nullable;

/**
 * Sees every job before it is scheduled with a {@link JobScheduler} or a crontab: each one of a bulk add, and a batch job
 * as one. Several are called in order, each with what the one before returned. Jobs that SQL adds are not seen.
 *
 * <p>Every worker with a recurring item asks, on {@code worker-cron}, though only one of them adds the job; its payload is a
 * {@code JsonNode} with {@code _cron} in it, and the minute cannot be changed.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface ScheduleInterceptor {

    /**
     * Decides about one job. Called on the thread of the one who adds it, within its transaction, before anything is
     * written.
     *
     * @return the job to add: the given one, or another one in its place; null to add none, whereupon the caller gets a
     *     {@link Job} that {@linkplain Job#isSkipped() is skipped}
     * @throws RuntimeException to refuse: the caller gets the exception, and no job of the same call is added. A recurring
     *     item fails for this minute alone, which {@code CronJobFailed} tells.
     */
    @Nullable JobRequest beforeSchedule(JobRequest request);
}
