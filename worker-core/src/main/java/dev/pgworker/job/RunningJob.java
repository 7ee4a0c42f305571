package dev.pgworker.job;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * A job that a PgWorker worker has been running for a second or more, or that has reported progress.
 *
 * @param job the job; its payload is not read, and empty
 * @param startedAt when the handler started, by the database's clock
 * @param progress what the handler has reported; null if nothing
 * @since 0.1.0
 */
public record RunningJob(
        Job job, Instant startedAt, @Nullable JobProgress progress) {}
