package dev.pgworker.job;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * A registered worker. Node.js workers do not register.
 *
 * @param id the id under which it locks jobs
 * @param startedAt when it registered
 * @param lastHeartbeatAt when it last proved its life, by the database's clock
 * @param metadata what it tells about itself, as JSON text; a PgWorker names its {@code tasks}, {@code concurrency} and
 *     {@code process}
 * @param heldJobs how many jobs it has locked
 * @param stale whether its last heartbeat is older than asked for, so that a sweep takes it for dead
 * @since 0.1.0
 */
public record ActiveWorker(
        String id,
        Instant startedAt,
        Instant lastHeartbeatAt,
        @Nullable String metadata,
        long heldJobs,
        boolean stale) {}
