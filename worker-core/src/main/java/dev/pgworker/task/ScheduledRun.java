package dev.pgworker.task;

import java.time.Instant;
import java.util.Optional;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;

/**
 * The execution of a recurring job that a job was added for.
 *
 * @param schedule the name of the schedule, or the identifier of the crontab item; null if the job does not say, because a
 *     Node.js or Rust worker has added it
 * @param scheduledAt when the execution was due, or when it was triggered
 * @param backfilled whether it was made up for later
 * @since 0.1.0
 */
public record ScheduledRun(@Nullable String schedule, Instant scheduledAt, boolean backfilled) {

    /**
     * Returns the execution that a job was added for, as the property {@code _cron} of its payload tells. Empty for a job
     * without one, whatever its payload is: nothing that another worker or SQL has written makes this fail.
     */
    public static Optional<ScheduledRun> of(Job job) {
        CronProperty cron = CronProperty.read(job.payload());
        return cron == null
                ? Optional.empty()
                : Optional.of(new ScheduledRun(cron.schedule(), cron.ts(), cron.backfilled()));
    }
}
