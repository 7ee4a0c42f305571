package dev.pgworker.internal.store;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import java.util.Optional;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.history.HistoryLosses;
import dev.pgworker.history.HistorySettings;
import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.schema.WorkerSchema;

/** Switches the history of a schema, reads whether it is kept, and has old entries deleted. Thread-safe. */
public final class HistoryStore {

    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

    /** For 200,000 rows. */
    private static final Duration DELETION_LIMIT = Duration.ofMinutes(1);

    private final DataSource dataSource;
    private final WorkerSchema schema;

    /** Creates a store for one schema. */
    public HistoryStore(DataSource dataSource, WorkerSchema schema) {
        this.dataSource = dataSource;
        this.schema = schema;
    }

    /** Two columns, of which {@link #losses} makes the losses of the last day. */
    public static final String LOSSES = """
            (select pg_catalog.sum(l.jobs) from {schema}.pgworker_history_losses l
              where l.lost_at operator(pg_catalog.>) (pg_catalog.now() operator(pg_catalog.-) interval '1 day')),
            (select l.reason from {schema}.pgworker_history_losses l
              where l.lost_at operator(pg_catalog.>) (pg_catalog.now() operator(pg_catalog.-) interval '1 day')
              order by l.lost_at desc limit 1)
            """;

    /** Reads losses from a column and the next one; null if there are none. */
    public static @Nullable HistoryLosses losses(ResultSet row, int column) throws SQLException {
        String reason = row.getString(column + 1);
        return reason == null ? null : new HistoryLosses(row.getLong(column), reason);
    }

    private static final String READ = """
            select s.enabled and (
              select pg_catalog.has_function_privilege(p.oid, 'execute') from pg_catalog.pg_proc p
              where p.pronamespace operator(pg_catalog.=) '{schema}'::pg_catalog.regnamespace
                and p.proname operator(pg_catalog.=) 'pgworker_note_runs')
            from {schema}.pgworker_history_settings s
            """;

    /** Reads whether a history is kept and this worker may add what only it knows. */
    public boolean read() throws SQLException {
        return Connections.call(dataSource, schema.in(READ), ANSWER_LIMIT, (connection, statement) -> {
            try (ResultSet row = statement.executeQuery()) {
                return row.next() && row.getBoolean(1);
            }
        });
    }

    /** Reads what the history does not show, if anything. */
    public Optional<HistoryLosses> readLosses() throws SQLException {
        return Connections.call(dataSource, schema.in("select " + LOSSES), ANSWER_LIMIT, (connection, statement) -> {
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return Optional.ofNullable(losses(row, 1));
            }
        });
    }

    private static final String KEEP = """
            select {schema}.pgworker_keep_history(
              enabled => ?, keep_for => ?::double precision operator(pg_catalog.*) interval '1 ms', keep_most => ?, payloads => ?)
            """;

    /**
     * Has the schema keep a history by the settings, or none.
     *
     * @return whether that changes anything
     */
    public boolean keep(HistorySettings settings) throws SQLException {
        boolean on = Boolean.TRUE.equals(settings.enabled());
        @Nullable Double keepFor = on ? Timestamps.millis(settings.keepFor()) : null;
        return Connections.call(dataSource, schema.in(KEEP), ANSWER_LIMIT, (connection, statement) -> {
            statement.setObject(1, settings.enabled(), Types.BOOLEAN);
            statement.setObject(2, keepFor, Types.DOUBLE);
            statement.setObject(3, on ? settings.keepMost() : null, Types.BIGINT);
            statement.setObject(4, on ? settings.payloads() : null, Types.BOOLEAN);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getBoolean(1);
            }
        });
    }

    private static final String TEND = "select {schema}.pgworker_tend_history()";

    /** Deletes old entries. */
    public void tend() throws SQLException {
        Connections.call(dataSource, schema.in(TEND), DELETION_LIMIT, (connection, statement) -> statement.execute());
    }
}
