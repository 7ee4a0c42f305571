package dev.pgworker.internal.store;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.history.HistorySettings;
import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.schema.WorkerSchema;

/** Whether a schema keeps a history, and what has to be done for one. Thread-safe. */
public final class HistoryStore {

    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

    private final DataSource dataSource;
    private final WorkerSchema schema;

    /** Creates a store for one schema. */
    public HistoryStore(DataSource dataSource, WorkerSchema schema) {
        this.dataSource = dataSource;
        this.schema = schema;
    }

    /**
     * How things stand.
     *
     * @param wanted whether a history is to be kept
     * @param kept whether it is
     * @param telling whether this worker may tell it what only it knows
     * @param made whether there are partitions that may have entries
     */
    public record State(boolean wanted, boolean kept, boolean telling, boolean made) {

        /** Returns whether there is something to tend. */
        public boolean isUsed() {
            return wanted || kept || made;
        }
    }

    private static final String READ = """
            select s.enabled, s.enabled and t.triggers operator(pg_catalog.=) 2, f.functions operator(pg_catalog.=) 3,
              pg_catalog.to_regclass('{schema}.pgworker_history_0') is not null, t.triggers operator(pg_catalog.>) 0
            from {schema}.pgworker_history_settings s
            cross join (
              select pg_catalog.count(*) as triggers from pg_catalog.pg_trigger t
              where t.tgrelid operator(pg_catalog.=) '{schema}._private_jobs'::pg_catalog.regclass
                and t.tgname operator(pg_catalog.=) any (array['pgworker_history_deleted', 'pgworker_history_updated']::pg_catalog.name[])) t
            cross join (
              select pg_catalog.count(*) as functions from pg_catalog.pg_proc p
              where p.pronamespace operator(pg_catalog.=) '{schema}'::pg_catalog.regnamespace
                and p.proname operator(pg_catalog.~~) 'pgworker%recorded'
                and pg_catalog.has_function_privilege(p.oid, 'execute')) f
            """;

    /** Reads how things stand. */
    public State read() throws SQLException {
        return Connections.call(dataSource, schema.in(READ), ANSWER_LIMIT, (connection, statement) -> {
            try (ResultSet row = statement.executeQuery()) {
                return row.next()
                        ? new State(
                                row.getBoolean(1),
                                row.getBoolean(2),
                                row.getBoolean(2) && row.getBoolean(3),
                                row.getBoolean(4) || row.getBoolean(5))
                        : new State(false, false, false, false);
            }
        });
    }

    private static final String KEEP = """
            select {schema}.pgworker_keep_history(
              enabled => ?, keep_for => ?::double precision operator(pg_catalog.*) interval '1 ms', keep_most => ?, payloads => ?)
            """;

    /**
     * Has the schema keep a history as the settings say, or none.
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

    /** Puts the settings into effect and drops old entries. Returns false if locks of others are in the way. */
    public boolean tend() throws SQLException {
        return Connections.call(dataSource, schema.in(TEND), ANSWER_LIMIT, (connection, statement) -> {
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getString(1) == null;
            }
        });
    }
}
