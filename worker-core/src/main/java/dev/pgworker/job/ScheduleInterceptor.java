package dev.pgworker.job;

import org.jspecify.annotations.Nullable;

/**
 * Intercepts every job before a {@link JobScheduler} or a crontab schedules it: each job of a bulk add separately, and
 * a batch job as one. Several interceptors are called in order, each with the result of the one before it. Jobs added
 * in SQL are not intercepted.
 *
 * <p>For a recurring item, every worker that has the item calls its interceptors, on the thread {@code worker-cron}
 * or {@code worker-cron-late}, although only one worker adds the job. The payload is a {@code JsonNode} that contains {@code _cron}, and the minute
 * cannot be changed.
 *
 * <p>For a schedule of the database, the worker that executes it calls its interceptors, on the thread {@code worker-schedules}
 * or {@code worker-schedules-late} and while the row of the schedule is locked, so that they must not change schedules. If that takes ten seconds, another worker
 * executes the schedule.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface ScheduleInterceptor {

    /**
     * Decides about one job. Called on the thread that adds the job, within the caller's transaction, before anything
     * is written.
     *
     * @return the job to add: the given one, or another one to add instead; null to add none, in which case the caller
     *     receives a {@link Job} that {@linkplain Job#isSkipped() is skipped}
     * @throws RuntimeException to reject the job: the exception is passed on to the caller, and no job of the same call
     *     is added. A recurring item fails for this minute only, which {@code CronJobFailed} reports
     */
    @Nullable JobRequest beforeSchedule(JobRequest request);
}
