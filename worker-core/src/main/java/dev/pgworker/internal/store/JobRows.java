package dev.pgworker.internal.store;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;

/** The columns of jobs: how rows are read, and how a {@link JobSpec} is written. */
public final class JobRows {

    private static final JsonMapper json = new JsonMapper();

    /** What a job that waits for a limit has as the time of its lock, so that no worker of any kind claims it. */
    private static final Instant PARKED_AT = Instant.parse("9999-01-01T00:00:00Z");

    private JobRows() {}

    /** Reads what {@code add_job} returns: id, payload, priority and so on, without the names of task and queue. */
    public static Job addedJob(ResultSet row, String task, @Nullable String queue) throws SQLException {
        Instant lockedAt = Timestamps.nullableInstant(row, 11);
        String lockedBy = row.getString(12);
        boolean limited = PARKED_AT.equals(lockedAt);
        return new Job(
                row.getLong(1),
                task,
                row.getString(2),
                queue,
                row.getInt(3),
                Timestamps.instant(row, 4),
                row.getInt(5),
                row.getInt(6),
                row.getString(7),
                Timestamps.instant(row, 8),
                Timestamps.instant(row, 9),
                row.getString(10),
                limited ? null : lockedAt,
                limited ? null : lockedBy,
                row.getInt(13),
                flags(row, 14),
                0,
                limited);
    }

    /** Returns a job with the names of its task and queue, which its row has by id only. */
    public static Job named(Job job, String task, @Nullable String queue) {
        return new Job(
                job.id(),
                task,
                job.payload(),
                queue,
                job.priority(),
                job.runAt(),
                job.attempts(),
                job.maxAttempts(),
                job.lastError(),
                job.createdAt(),
                job.updatedAt(),
                job.key(),
                job.lockedAt(),
                job.lockedBy(),
                job.revision(),
                job.flags(),
                job.recoveries(),
                job.limited());
    }

    /** A job without a key that was just added with these values: no other session can have changed it yet. */
    public static Job freshJob(long id, String task, String payload, JobSpec spec, Instant addedAt) {
        return new Job(
                id,
                task,
                payload,
                spec.queueName(),
                spec.priority() == null ? 0 : spec.priority(),
                spec.runAt() == null ? addedAt : Timestamps.stored(spec.runAt()),
                0,
                spec.maxAttempts() == null ? 25 : spec.maxAttempts(),
                null,
                addedAt,
                addedAt,
                null,
                null,
                null,
                0,
                spec.flags().isEmpty() ? Set.of() : new LinkedHashSet<>(spec.flags()));
    }

    /** Returns what a caller gets for a job that has not been added. */
    public static Job skippedJob(JobRequest request, String payload) {
        return freshJob(0, request.identifier(), payload, request.spec(), Instant.now());
    }

    /** Flags are stored as {@code {"flag": true}}; the peers look at the keys. */
    public static Set<String> flags(ResultSet row, int column) throws SQLException {
        String text = row.getString(column);
        if (text == null) {
            return Set.of();
        }
        Set<String> flags = new LinkedHashSet<>();
        for (Map.Entry<String, ?> property : json.readTree(text).properties()) {
            flags.add(property.getKey());
        }
        return flags;
    }

    /**
     * Returns the flags as PostgreSQL writes an array of texts; null for none. As a text, because those of many jobs are an array
     * again, and arrays of arrays must be rectangular.
     */
    public static @Nullable String flags(JobSpec spec) {
        if (spec.flags().isEmpty()) {
            return null;
        }
        return spec.flags().stream()
                .map(flag -> '"' + flag.replace("\\", "\\\\").replace("\"", "\\\"") + '"')
                .collect(Collectors.joining(",", "{", "}"));
    }

    /** Returns what happens if a job with the key exists. */
    public static JobKeyMode keyMode(JobSpec spec) {
        return spec.jobKeyMode() == null ? JobKeyMode.REPLACE : spec.jobKeyMode();
    }
}
