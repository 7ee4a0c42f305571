package dev.pgworker.internal.jdbc;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.LinkedHashMap;
import java.util.Map;

/** Settings of a session as they were before they were changed, so that a pool gets its connection back as it was. */
public record SessionSettings(Map<String, String> before) {

    private static final String READ = """
            select s.name, pg_catalog.current_setting(s.name)
            from pg_catalog.pg_settings s
            where s.name operator(pg_catalog.=) any(?)
            """;

    private static final String SET = """
            select pg_catalog.set_config(g.name, g.value, false)
            from rows from (pg_catalog.unnest(?::text[]), pg_catalog.unnest(?::text[])) g(name, value)
            """;

    /** Changes those of the settings that this server knows. The connection must be in auto-commit mode. */
    public static SessionSettings set(Connection connection, Map<String, String> settings) throws SQLException {
        Map<String, String> before = new LinkedHashMap<>();
        try (PreparedStatement statement = connection.prepareStatement(READ)) {
            statement.setArray(
                    1, connection.createArrayOf("text", settings.keySet().toArray()));
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    before.put(rows.getString(1), rows.getString(2));
                }
            }
        }
        Map<String, String> known = new LinkedHashMap<>(settings);
        known.keySet().retainAll(before.keySet());
        write(connection, known);
        return new SessionSettings(before);
    }

    /** Sets what was before. The connection must be in auto-commit mode. */
    public void restore(Connection connection) throws SQLException {
        write(connection, before);
    }

    private static void write(Connection connection, Map<String, String> settings) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(SET)) {
            statement.setArray(
                    1, connection.createArrayOf("text", settings.keySet().toArray()));
            statement.setArray(
                    2, connection.createArrayOf("text", settings.values().toArray()));
            statement.execute();
        }
    }
}
