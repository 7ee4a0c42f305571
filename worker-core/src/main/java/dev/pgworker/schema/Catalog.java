package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

/** Looks for tables of a schema that may not be there. */
final class Catalog {

    private Catalog() {}

    static boolean hasTable(Connection connection, WorkerSchema schema, String table) throws SQLException {
        String sql = """
                select 1 from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                where n.nspname = ?::pg_catalog.name and c.relname = ?::pg_catalog.name
                """;
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, schema.name());
            statement.setString(2, table);
            try (ResultSet row = statement.executeQuery()) {
                return row.next();
            }
        }
    }
}
