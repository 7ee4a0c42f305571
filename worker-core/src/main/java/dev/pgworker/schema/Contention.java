package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Set;

/** Others that are in the way of a change to the schema. */
final class Contention {

    private static final String LOCK_NOT_AVAILABLE = "55P03";
    private static final String DEADLOCK = "40P01";

    /** The server's message when two sessions replace a function at the same moment. */
    private static final String CONCURRENTLY_UPDATED = "tuple concurrently updated";

    private static final Set<String> STATES = Set.of(LOCK_NOT_AVAILABLE, DEADLOCK);

    private Contention() {}

    /** Returns whether the same statement may succeed a moment later. */
    static boolean isCauseOf(Throwable failure) {
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof SQLException sql
                    && (STATES.contains(String.valueOf(sql.getSQLState()))
                            || String.valueOf(sql.getMessage()).contains(CONCURRENTLY_UPDATED))) {
                return true;
            }
        }
        return false;
    }

    private static final String HOLDERS = """
            select pg_catalog.string_agg(distinct pg_catalog.format('%s (%s, %s, in a transaction for %s s)', a.pid,
                coalesce(nullif(a.application_name, ''), a.backend_type), coalesce(a.state, 'state unknown'),
                coalesce(pg_catalog.round(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - a.xact_start))::pg_catalog.text, '?')), ', ')
            from pg_catalog.pg_locks l
            join pg_catalog.pg_class c on c.oid = l.relation
            join pg_catalog.pg_namespace n on n.oid = c.relnamespace
            join pg_catalog.pg_stat_activity a on a.pid = l.pid
            where n.nspname = ?::pg_catalog.name and c.relkind = 'r' and l.granted and a.pid <> pg_catalog.pg_backend_pid()
            """;

    /** Names the sessions that use tables of the schema at the moment; empty if there is none. */
    static String holders(Connection connection, WorkerSchema schema) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(HOLDERS)) {
            statement.setString(1, schema.name());
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                String holders = row.getString(1);
                return holders == null ? "" : " Sessions that use its tables now: " + holders + ".";
            }
        }
    }
}
