package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;

/** How long the statements of a session may wait for locks, and that they may run for as long as they need, until they are put back. */
final class SessionLimits {

    private final Connection connection;
    private final String lockTimeout;
    private final String statementTimeout;

    private SessionLimits(Connection connection, String lockTimeout, String statementTimeout) {
        this.connection = connection;
        this.lockTimeout = lockTimeout;
        this.statementTimeout = statementTimeout;
    }

    /** Sets the limits; the connection must commit by itself. */
    static SessionLimits of(Connection connection, Duration lockTimeout) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery("select pg_catalog.current_setting('lock_timeout'),"
                        + " pg_catalog.current_setting('statement_timeout')")) {
            row.next();
            SessionLimits limits = new SessionLimits(connection, row.getString(1), row.getString(2));
            limits.set(lockTimeout.toMillis() + "ms", "0");
            return limits;
        }
    }

    private void set(String lock, String statementLimit) throws SQLException {
        try (PreparedStatement statement =
                connection.prepareStatement("select pg_catalog.set_config('lock_timeout', ?, false),"
                        + " pg_catalog.set_config('statement_timeout', ?, false)")) {
            statement.setString(1, lock);
            statement.setString(2, statementLimit);
            statement.execute();
        }
    }

    /** Puts back what was set before. */
    void putBack() throws SQLException {
        if (!connection.isClosed()) {
            set(lockTimeout, statementTimeout);
        }
    }
}
