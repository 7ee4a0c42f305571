package dev.pgworker.internal.store;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import javax.sql.DataSource;

import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.SqlArrays;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.schema.WorkerSchema;

/** The figures of the last 24 hours, as workers record them. Plain JDBC, for the reason that the package gives. */
public final class StatisticsStore {

    /** Stands for all tasks. */
    public static final String ALL_TASKS = "";

    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

    private final DataSource dataSource;
    private final WorkerSchema schema;

    /** Creates a store for one schema. */
    public StatisticsStore(DataSource dataSource, WorkerSchema schema) {
        this.dataSource = dataSource;
        this.schema = schema;
    }

    /**
     * What became of the jobs of a task within a minute.
     *
     * @param task its identifier, or {@link #ALL_TASKS}
     */
    public record Row(
            String task, long succeeded, long retried, long failed, DurationCounts run, DurationCounts waited) {}

    // Rows are locked in the order of the key, as other workers add to the same.
    private static final String ADD = """
            with quick as materialized (
              select pg_catalog.set_config('synchronous_commit', 'off', true),
                pg_catalog.date_trunc('minute', (pg_catalog.clock_timestamp() - ?::double precision * interval '1 ms') at time zone 'UTC')
                  as at)
            insert into {schema}.pgworker_task_minutes as m (
              span, begins_at, task, succeeded, retried, failed, run, waited, last_minute)
            select s.span, s.begins_at at time zone 'UTC', g.task, g.succeeded, g.retried, g.failed,
              g.run::bigint[], g.waited::bigint[], case when g.run <> '{}' then quick.at at time zone 'UTC' end
            from quick
            cross join rows from (
              pg_catalog.unnest(?::pg_catalog.text[]), pg_catalog.unnest(?::bigint[]), pg_catalog.unnest(?::bigint[]),
              pg_catalog.unnest(?::bigint[]), pg_catalog.unnest(?::pg_catalog.text[]), pg_catalog.unnest(?::pg_catalog.text[]))
              g(task, succeeded, retried, failed, run, waited)
            cross join lateral (
              values (0, quick.at), (1, quick.at), (60, pg_catalog.date_trunc('hour', quick.at))) s(span, begins_at)
            where (s.span = 0) = (g.task = '')
            order by s.span, s.begins_at, g.task
            on conflict on constraint pgworker_task_minutes_pkey do update set
              succeeded = m.succeeded + excluded.succeeded, retried = m.retried + excluded.retried, failed = m.failed + excluded.failed,
              run = {schema}.pgworker_add_counts(m.run, excluded.run),
              waited = {schema}.pgworker_add_counts(m.waited, excluded.waited),
              last_minute = greatest(m.last_minute, excluded.last_minute)
            """;

    /**
     * Adds to the figures of a minute.
     *
     * @param age how long ago that was
     * @param rows one for each task, and one for all
     */
    public void add(Duration age, List<Row> rows) throws SQLException {
        Connections.call(dataSource, schema.in(ADD), ANSWER_LIMIT, (connection, statement) -> {
            statement.setDouble(1, Timestamps.millis(age));
            statement.setArray(2, SqlArrays.array(connection, "text", rows, Row::task));
            statement.setArray(3, SqlArrays.array(connection, "int8", rows, Row::succeeded));
            statement.setArray(4, SqlArrays.array(connection, "int8", rows, Row::retried));
            statement.setArray(5, SqlArrays.array(connection, "int8", rows, Row::failed));
            statement.setArray(
                    6,
                    SqlArrays.array(connection, "text", rows, row -> row.run().stored()));
            statement.setArray(
                    7,
                    SqlArrays.array(
                            connection, "text", rows, row -> row.waited().stored()));
            return statement.executeUpdate();
        });
    }

    private static final String SAMPLE = """
            select {schema}.pgworker_sample(?::double precision * interval '1 ms', ?::double precision * interval '1 ms')
            """;

    /**
     * Records the backlog, and deletes what is old.
     *
     * @param intervalBefore how old the newest sample has to be
     * @param kept for how long figures are kept
     * @return false if another worker has recorded it, or is doing so
     */
    public boolean sample(Duration intervalBefore, Duration kept) throws SQLException {
        return Connections.call(dataSource, schema.in(SAMPLE), ANSWER_LIMIT, (connection, statement) -> {
            statement.setDouble(1, Timestamps.millis(intervalBefore));
            statement.setDouble(2, Timestamps.millis(kept));
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getBoolean(1);
            }
        });
    }
}
