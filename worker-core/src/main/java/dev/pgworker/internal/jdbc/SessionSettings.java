package dev.pgworker.internal.jdbc;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.Map;

/** Settings of a session. */
public final class SessionSettings {

    private SessionSettings() {}

    private static final String SET = """
            select pg_catalog.set_config(s.name, g.value, false)
            from rows from (pg_catalog.unnest(?::text[]), pg_catalog.unnest(?::text[])) g(name, value)
            join pg_catalog.pg_settings s on s.name operator(pg_catalog.=) g.name
            """;

    /** Changes those of the settings that this server knows. The connection must be in auto-commit mode. */
    public static void set(Connection connection, Map<String, String> settings) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(SET)) {
            statement.setArray(
                    1, connection.createArrayOf("text", settings.keySet().toArray()));
            statement.setArray(
                    2, connection.createArrayOf("text", settings.values().toArray()));
            statement.execute();
        }
    }
}
