package dev.pgworker.internal.store;

import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.SqlArrays;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.schema.WorkerSchema;

/** The schedules of the database that wait for the end of a job. Each method takes a connection of its own and commits before it returns. */
public final class ScheduleEnds {

    /** How long the server may take for one statement. */
    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(30);

    private final DataSource dataSource;
    private final WorkerSchema schema;

    ScheduleEnds(DataSource dataSource, WorkerSchema schema) {
        this.dataSource = dataSource;
        this.schema = schema;
    }

    private static final String ENDED_JOBS = """
            select s.name from {schema}.pgworker_schedules s
            where s.last_job_id = any(?) and s.awaits_end and s.paused_at is null
            """;

    /** Returns the names of the schedules that wait for the end of one of these jobs. */
    public List<String> awaiting(Collection<Long> jobIds) throws SQLException {
        return Connections.call(dataSource, schema.in(ENDED_JOBS), ANSWER_LIMIT, (connection, statement) -> {
            statement.setArray(1, SqlArrays.ids(connection, jobIds.stream()));
            return texts(statement);
        });
    }

    /**
     * A part of the schedules that wait for the end of a job.
     *
     * @param ended the names of those whose job has ended
     * @param last the last name of the part; null if it is the end
     */
    public record Ended(List<String> ended, @Nullable String last) {}

    private static final String ENDED = """
            with part as materialized (
              select s.name, s.last_job_id from {schema}.pgworker_schedules s
              where s.awaits_end and s.paused_at is null and s.name > ?::pg_catalog.text
              order by s.name limit ?)
            select
              (select pg_catalog.array_agg(p.name) from part p where not exists (
                select from {schema}._private_jobs j
                where j.id = p.last_job_id and (j.attempts < j.max_attempts or {schema}.pgworker_locked(j.locked_at, j.locked_by)))),
              (select pg_catalog.max(p.name) from part p),
              (select pg_catalog.count(*) from part p)
            """;

    /** Looks at a part of the schedules that wait for the end of a job. */
    public Ended ended(String after, int most) throws SQLException {
        return Connections.call(dataSource, schema.in(ENDED), ANSWER_LIMIT, (connection, statement) -> {
            statement.setString(1, after);
            statement.setInt(2, most);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                Array ended = row.getArray(1);
                return new Ended(
                        ended == null ? List.of() : List.of((String[]) ended.getArray()),
                        row.getLong(3) < most ? null : row.getString(2));
            }
        });
    }

    // An interval of ten years at most is added: no time that comes of it is out of range.
    private static final String END = """
            update {schema}.pgworker_schedules s set
              awaits_end = false,
              next_at = case when e.next_at >= s.ends_at then null else e.next_at end,
              retry_at = case when s.retry_at is null or e.next_at >= s.ends_at then null else e.next_at end
            from (
              select l.name, greatest(?::pg_catalog.timestamptz + l.every, l.starts_at) next_at from {schema}.pgworker_schedules l
              where l.name = any(?) and l.awaits_end and l.paused_at is null and l.kind = 'delay' and not exists (
                select from {schema}._private_jobs j
                where j.id = l.last_job_id and (j.attempts < j.max_attempts or {schema}.pgworker_locked(j.locked_at, j.locked_by)))
              for update skip locked) e
            where s.name = e.name
            """;

    /**
     * Has the delays of these schedules begin at the given time, where the job has ended without notice. Returns how
     * many.
     */
    public int end(List<String> names, Instant now) throws SQLException {
        return Connections.call(dataSource, schema.in(END), ANSWER_LIMIT, (connection, statement) -> {
            statement.setObject(1, Timestamps.offset(now), Types.TIMESTAMP_WITH_TIMEZONE);
            statement.setArray(2, names(connection, names));
            return statement.executeUpdate();
        });
    }

    static Array names(Connection connection, Collection<String> names) throws SQLException {
        return connection.createArrayOf("text", names.toArray());
    }

    static List<String> texts(PreparedStatement statement) throws SQLException {
        List<String> texts = new ArrayList<>();
        try (ResultSet rows = statement.executeQuery()) {
            while (rows.next()) {
                texts.add(rows.getString(1));
            }
        }
        return texts;
    }
}
