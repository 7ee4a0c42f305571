package dev.pgworker.task;

import java.time.Duration;
import java.time.Instant;
import java.util.Optional;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.job.Job;

/**
 * The execution of a recurring job that a job was added for.
 *
 * @param schedule the name of the schedule, or the identifier of the crontab item; null if the job does not have it,
 *     because a Node.js or Rust worker has added it
 * @param scheduledAt when the execution was due, or when it was triggered
 * @param backfilled whether it was missed and ran later
 * @since 0.1.0
 */
public record ScheduledRun(@Nullable String schedule, Instant scheduledAt, boolean backfilled) {

    /** By how much a job is added later than it is due that is in time. */
    private static final Duration IN_TIME = Duration.ofMinutes(1);

    /**
     * Returns the execution that a job was added for, from the property {@code _cron} of its payload. Empty for a job
     * without one, whatever its payload is: nothing that another worker or SQL has written makes this fail.
     *
     * <p>Rust workers store the JSON value {@code null} for a crontab item without a payload. Such a job counts as that of an
     * execution if its time is the beginning of a minute, which is so until its first attempt has failed.
     */
    public static Optional<ScheduledRun> of(Job job) {
        String payload = Arguments.requireNonNull("job", job).payload();
        if (payload.length() <= 10 && payload.strip().equals("null")) {
            return ofRust(job);
        }
        CronProperty found = CronProperty.read(payload);
        return found == null
                ? Optional.empty()
                : Optional.of(new ScheduledRun(found.schedule(), found.ts(), found.backfilled()));
    }

    private static Optional<ScheduledRun> ofRust(Job job) {
        Instant due = job.runAt();
        return due.getEpochSecond() % 60 == 0 && due.getNano() == 0
                ? Optional.of(new ScheduledRun(
                        null, due, Duration.between(due, job.createdAt()).compareTo(IN_TIME) >= 0))
                : Optional.empty();
    }
}
