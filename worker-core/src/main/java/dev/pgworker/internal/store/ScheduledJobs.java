package dev.pgworker.internal.store;

import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Comparator;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Objects;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.SqlArrays;
import dev.pgworker.internal.store.ScheduleStep.NewJob;
import dev.pgworker.schema.WorkerSchema;

/** Adds the jobs of schedules in one transaction. Used by one thread. */
final class ScheduledJobs {

    private final WorkerSchema schema;
    private final Connection connection;
    private final IdentityHashMap<NewJob, Long> ids = new IdentityHashMap<>();

    ScheduledJobs(WorkerSchema schema, Connection connection) {
        this.schema = schema;
        this.connection = connection;
    }

    /** Adds jobs, those with keys last, in the order in which all lock keys; returns the id of each. */
    IdentityHashMap<NewJob, Long> add(List<ScheduleStep> steps) throws SQLException {
        List<NewJob> jobs = steps.stream().flatMap(step -> step.jobs().stream()).toList();
        List<NewJob> plain =
                jobs.stream().filter(job -> job.spec().jobKey() == null).toList();
        if (!plain.isEmpty()) {
            addPlain(plain);
        }
        List<NewJob> keyed = jobs.stream()
                .filter(job -> job.spec().jobKey() != null)
                .sorted(Comparator.comparing(
                        job -> Objects.requireNonNull(job.spec().jobKey())))
                .toList();
        if (!keyed.isEmpty()) {
            addKeyed(keyed);
        }
        return ids;
    }

    private static final String ADD_PLAIN = """
            select pg_catalog.unnest(a.job_ids) from {schema}.pgworker_add_jobs(?, ?, ?, ?::pg_catalog.timestamptz[], ?, ?, ?) a
            """;

    private void addPlain(List<NewJob> jobs) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(ADD_PLAIN))) {
            statement.setArray(1, SqlArrays.array(connection, "text", jobs, NewJob::task));
            statement.setArray(2, SqlArrays.array(connection, "text", jobs, NewJob::payload));
            statement.setArray(3, queues(jobs));
            statement.setArray(
                    4, SqlArrays.times(connection, jobs, job -> job.spec().runAt()));
            statement.setArray(
                    5,
                    SqlArrays.array(connection, "int4", jobs, job -> job.spec().maxAttempts()));
            statement.setArray(
                    6,
                    SqlArrays.array(connection, "int4", jobs, job -> job.spec().priority()));
            statement.setArray(7, SqlArrays.array(connection, "text", jobs, job -> JobRows.flags(job.spec())));
            int place = 0;
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    ids.put(jobs.get(place++), rows.getLong(1));
                }
            }
        }
    }

    private @Nullable Array queues(List<NewJob> jobs) throws SQLException {
        return jobs.stream().allMatch(job -> job.spec().queueName() == null)
                ? null
                : SqlArrays.array(connection, "text", jobs, job -> job.spec().queueName());
    }

    // Only without a schema does unnest take several arrays, and the parser looks for it in pg_catalog only.
    private static final String ADD_KEYED = """
            select d.place, coalesce(
                ({schema}.add_job(
                  identifier => d.task, payload => d.payload::pg_catalog.json, queue_name => d.queue_name, run_at => d.run_at,
                  max_attempts => d.max_attempts, job_key => d.job_key, priority => d.priority,
                  flags => d.flags::pg_catalog.text[], job_key_mode => d.mode)).id,
                {schema}.pgworker_kept_out(0, 1))
            from (
              select * from unnest(
                  ?::pg_catalog.text[], ?::pg_catalog.text[], ?::pg_catalog.text[], ?::pg_catalog.timestamptz[],
                  ?::pg_catalog.int4[], ?::pg_catalog.text[], ?::pg_catalog.int4[], ?::pg_catalog.text[], ?::pg_catalog.text[])
                with ordinality u(task, payload, queue_name, run_at, max_attempts, job_key, priority, flags, mode, place)
              order by u.place) d
            """;

    private void addKeyed(List<NewJob> jobs) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(ADD_KEYED))) {
            statement.setArray(1, SqlArrays.array(connection, "text", jobs, NewJob::task));
            statement.setArray(2, SqlArrays.array(connection, "text", jobs, NewJob::payload));
            statement.setArray(
                    3,
                    SqlArrays.array(connection, "text", jobs, job -> job.spec().queueName()));
            statement.setArray(
                    4, SqlArrays.times(connection, jobs, job -> job.spec().runAt()));
            statement.setArray(
                    5,
                    SqlArrays.array(connection, "int4", jobs, job -> job.spec().maxAttempts()));
            statement.setArray(
                    6,
                    SqlArrays.array(connection, "text", jobs, job -> job.spec().jobKey()));
            statement.setArray(
                    7,
                    SqlArrays.array(connection, "int4", jobs, job -> job.spec().priority()));
            statement.setArray(8, SqlArrays.array(connection, "text", jobs, job -> JobRows.flags(job.spec())));
            statement.setArray(9, SqlArrays.array(connection, "text", jobs, ScheduledJobs::mode));
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    ids.put(jobs.get(rows.getInt(1) - 1), rows.getLong(2));
                }
            }
        }
    }

    private static String mode(NewJob job) {
        return JobRows.keyMode(job.spec()).sqlName();
    }
}
