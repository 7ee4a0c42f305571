package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.HashSet;
import java.util.Set;

/** What a schema has of that which all Graphile Workers share. */
final class Catalog {

    /** Functions that other Graphile Workers know too. */
    static final Set<String> SHARED_FUNCTIONS = Set.of(
            "add_job",
            "add_jobs",
            "remove_job",
            "complete_jobs",
            "permanently_fail_jobs",
            "reschedule_jobs",
            "force_unlock_workers",
            "worker_heartbeat",
            "worker_deregister",
            "list_stale_workers",
            "list_orphan_locked_workers",
            "recover_dead_worker_jobs",
            "delete_stale_workers");

    private Catalog() {}

    static boolean hasTable(Connection connection, WorkerSchema schema, String table) throws SQLException {
        return !columns(connection, schema, table).isEmpty();
    }

    /** Returns the columns of a table; none if there is no such table. */
    static Set<String> columns(Connection connection, WorkerSchema schema, String table) throws SQLException {
        String sql = """
                select a.attname from pg_catalog.pg_class c
                join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                join pg_catalog.pg_attribute a on a.attrelid = c.oid
                where n.nspname = ?::pg_catalog.name and c.relname = ?::pg_catalog.name and not a.attisdropped
                """;
        Set<String> columns = new HashSet<>();
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, schema.name());
            statement.setString(2, table);
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    columns.add(row.getString(1));
                }
            }
        }
        return columns;
    }
}
