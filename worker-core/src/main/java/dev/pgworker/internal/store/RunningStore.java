package dev.pgworker.internal.store;

import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.SqlArrays;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.schema.WorkerSchema;

/** What is recorded about the jobs that one worker runs. Plain JDBC, for the reason that the package gives. */
public final class RunningStore {

    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(5);

    private final DataSource dataSource;
    private final WorkerSchema schema;
    private final String workerId;

    /** Creates a store for one worker. */
    public RunningStore(DataSource dataSource, WorkerSchema schema, String workerId) {
        this.dataSource = dataSource;
        this.schema = schema;
        this.workerId = workerId;
    }

    /**
     * A run.
     *
     * @param lockedAt the time of the job's lock
     * @param running for how long it has been running
     * @param done null if no progress has been reported
     * @param total null if no progress has been reported
     */
    public record Row(
            long jobId,
            Instant lockedAt,
            Duration running,
            @Nullable Long done,
            @Nullable Long total,
            @Nullable String text) {}

    // Waiting for the disk would keep a connection, and the last second is not missed when the server has crashed. A
    // worker may run two attempts of one job that was unlocked by hand while its handler continued: the later one
    // counts.
    private static final String PUT = """
            with quick as materialized (
              select pg_catalog.set_config('synchronous_commit', 'off', true), pg_catalog.clock_timestamp() as at)
            insert into {schema}.pgworker_running as r (worker_id, job_id, locked_at, started_at, done, total, text, updated_at)
            select distinct on (g.job_id) ?, g.job_id, g.locked_at, quick.at - g.millis * interval '1 ms', g.done, g.total, g.text,
              case when g.done is not null then quick.at end
            from quick
            cross join rows from (
              pg_catalog.unnest(?::bigint[]), pg_catalog.unnest(?::pg_catalog.timestamptz[]), pg_catalog.unnest(?::double precision[]),
              pg_catalog.unnest(?::bigint[]), pg_catalog.unnest(?::bigint[]), pg_catalog.unnest(?::pg_catalog.text[]))
              g(job_id, locked_at, millis, done, total, text)
            order by g.job_id, g.locked_at desc
            on conflict on constraint pgworker_running_pkey do update set
              locked_at = excluded.locked_at,
              started_at = case when r.locked_at = excluded.locked_at then r.started_at else excluded.started_at end,
              done = excluded.done, total = excluded.total, text = excluded.text, updated_at = excluded.updated_at
            """;

    /** Records runs as they are. */
    public void put(List<Row> rows) throws SQLException {
        Connections.call(dataSource, schema.in(PUT), ANSWER_LIMIT, (connection, statement) -> {
            statement.setString(1, workerId);
            statement.setArray(2, SqlArrays.ids(connection, rows.stream().map(Row::jobId)));
            statement.setArray(3, SqlArrays.times(connection, rows, Row::lockedAt));
            statement.setArray(4, SqlArrays.array(connection, "float8", rows, row -> Timestamps.millis(row.running())));
            statement.setArray(5, SqlArrays.array(connection, "int8", rows, Row::done));
            statement.setArray(6, SqlArrays.array(connection, "int8", rows, Row::total));
            statement.setArray(7, SqlArrays.array(connection, "text", rows, Row::text));
            return statement.executeUpdate();
        });
    }

    private static final String DELETE = """
            with quick as materialized (select pg_catalog.set_config('synchronous_commit', 'off', true))
            delete from {schema}.pgworker_running r using quick where r.worker_id = ?::pg_catalog.text and r.job_id = any(?)
            """;

    /** Deletes what is recorded about runs that have ended. */
    public void delete(Collection<Long> jobIds) throws SQLException {
        Connections.call(dataSource, schema.in(DELETE), ANSWER_LIMIT, (connection, statement) -> {
            statement.setString(1, workerId);
            statement.setArray(2, SqlArrays.ids(connection, jobIds.stream()));
            return statement.executeUpdate();
        });
    }

    private static final String FORGET = """
            select {schema}.pgworker_forget_running()
            """;

    /** Deletes what dead workers have left. */
    public void forgetOthers() throws SQLException {
        Connections.call(dataSource, schema.in(FORGET), ANSWER_LIMIT, (connection, statement) -> statement.execute());
    }
}
