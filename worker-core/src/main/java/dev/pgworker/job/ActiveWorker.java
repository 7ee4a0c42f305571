package dev.pgworker.job;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * A registered worker. Node.js workers do not register.
 *
 * @param id the id under which the worker locks jobs
 * @param startedAt when the worker registered
 * @param lastHeartbeatAt when the worker last sent a heartbeat, by the database's clock
 * @param metadata what the worker publishes about itself, as JSON text; a PgWorker worker includes its {@code tasks},
 *     {@code concurrency} and {@code process}
 * @param heldJobs number of jobs that the worker has locked; null if they have not been counted
 * @param stale whether the last heartbeat is older than the requested age, so that a sweep considers the worker dead
 * @since 0.1.0
 */
public record ActiveWorker(
        String id,
        Instant startedAt,
        Instant lastHeartbeatAt,
        @Nullable String metadata,
        @Nullable Long heldJobs,
        boolean stale) {}
