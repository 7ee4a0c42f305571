package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;

/**
 * What statements need of their session that cannot run in a transaction, until it is put back: how long they may wait
 * for locks, that they may run for as long as they need, and that names are those of the system. Only for a session
 * that is not shared: not behind a connection pooler.
 */
final class SessionLimits {

    private final Connection connection;
    private final String lockTimeout;
    private final String statementTimeout;
    private final String searchPath;

    /** The system's names before those of the session. */
    static final String SEARCH_PATH = "pg_catalog, pg_temp";

    private SessionLimits(Connection connection, String lockTimeout, String statementTimeout, String searchPath) {
        this.connection = connection;
        this.lockTimeout = lockTimeout;
        this.statementTimeout = statementTimeout;
        this.searchPath = searchPath;
    }

    /** Sets the limits; the connection must commit by itself. */
    static SessionLimits of(Connection connection, Duration lockTimeout) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(
                        "select pg_catalog.current_setting('lock_timeout'),"
                                + " pg_catalog.current_setting('statement_timeout'), pg_catalog.current_setting('search_path')")) {
            row.next();
            SessionLimits limits = new SessionLimits(connection, row.getString(1), row.getString(2), row.getString(3));
            limits.set(lockTimeout.toMillis() + "ms", "0", SEARCH_PATH);
            return limits;
        }
    }

    private void set(String lock, String statementLimit, String path) throws SQLException {
        try (PreparedStatement statement =
                connection.prepareStatement("select pg_catalog.set_config('lock_timeout', ?, false),"
                        + " pg_catalog.set_config('statement_timeout', ?, false),"
                        + " pg_catalog.set_config('search_path', ?, false)")) {
            statement.setString(1, lock);
            statement.setString(2, statementLimit);
            statement.setString(3, path);
            statement.execute();
        }
    }

    /** Puts back what was set before. */
    void putBack() throws SQLException {
        if (!connection.isClosed()) {
            set(lockTimeout, statementTimeout, searchPath);
        }
    }
}
