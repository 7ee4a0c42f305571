package dev.pgworker.task;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * The execution of a recurring job that a job was added for.
 *
 * @param schedule the name of the schedule, or the identifier of the crontab item; null if the job does not say, because a
 *     Node.js or Rust worker has added it
 * @param scheduledAt when the execution was due, or when it was triggered
 * @param backfilled whether it was made up for later
 * @since 0.1.0
 */
public record ScheduledRun(@Nullable String schedule, Instant scheduledAt, boolean backfilled) {}
