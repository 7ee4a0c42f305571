package dev.pgworker.job;

import org.jspecify.annotations.Nullable;

/**
 * Sees every job before it is scheduled with a {@link JobScheduler}: each one of a bulk add, and a batch job as one. Several
 * are called in order, each with what the one before returned. Jobs that SQL adds are not seen.
 */
@FunctionalInterface
public interface ScheduleInterceptor {

    /**
     * Decides about one job. Called on the caller's thread, within its transaction, before anything is written.
     *
     * @return the job to add: the given one, or another one in its place; null to add none, whereupon the caller gets a
     *     {@link Job} that {@linkplain Job#isSkipped() is skipped}
     * @throws RuntimeException to refuse: the caller gets the exception, and no job of the same call is added
     */
    @Nullable JobRequest beforeSchedule(JobRequest request);
}
