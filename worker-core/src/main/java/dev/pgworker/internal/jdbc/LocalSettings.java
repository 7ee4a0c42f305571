package dev.pgworker.internal.jdbc;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

/** Settings that end with their transaction: a connection pooler may give the server's session to others afterwards. */
public final class LocalSettings {

    /** Not every server knows all settings. */
    private static final String STATEMENT = """
            select pg_catalog.format('select %s', pg_catalog.string_agg(
              pg_catalog.format('pg_catalog.set_config(%L, %L, true)', s.name, pg_catalog.split_part(g.one, '=', 2)), ', '))
            from pg_catalog.regexp_split_to_table(?, '[[:space:]]+') g(one)
            join pg_catalog.pg_settings s on s.name operator(pg_catalog.=) pg_catalog.split_part(g.one, '=', 1)
            """;

    private LocalSettings() {}

    /**
     * Returns the statement that makes those of the settings that the server knows, for the transaction in which it runs.
     *
     * @param settings as {@code name=value name=value}
     */
    public static String statement(Connection connection, String settings) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(STATEMENT)) {
            statement.setString(1, settings);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getString(1);
            }
        }
    }
}
