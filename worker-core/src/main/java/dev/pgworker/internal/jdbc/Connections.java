package dev.pgworker.internal.jdbc;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.failure.DatabaseContact;

/**
 * Runs statements in transactions of their own, whatever the pool's auto-commit default is; those of workers are READ COMMITTED,
 * whatever the role's or the pool's isolation level is. A connection on which one fails goes back as it was, or broken if that cannot be.
 */
public final class Connections {

    /** Below this a cancellation leaves the server too little time to be worth it. */
    private static final Duration SHORTEST_CANCELLED = Duration.ofSeconds(2);

    private Connections() {}

    /**
     * Runs one statement on a connection from the pool and commits it. If the server answers that it is read-only, the
     * connection is thrown away, with all others of the pool as far as possible, and the statement is run once more, on a
     * connection that was opened since: the pool may have been filled before a failover.
     */
    public static <T extends @Nullable Object> T call(DataSource dataSource, String sql, StatementCall<T> call)
            throws SQLException {
        return StaleConnections.replacing(dataSource, connection -> call(connection, sql, call));
    }

    private static <T extends @Nullable Object> T call(Connection connection, String sql, StatementCall<T> call)
            throws SQLException {
        return readingCommitted(connection, () -> {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                return call.on(connection, statement);
            }
        });
    }

    /**
     * Runs one statement on a connection that is in no transaction, READ COMMITTED, and commits it. Takes one round trip where the
     * connection is in auto-commit mode and its transactions begin at that level.
     */
    public static <T extends @Nullable Object> T readingCommitted(Connection connection, SqlWork<T> work)
            throws SQLException {
        if (!connection.getAutoCommit() || !ReadCommitted.isUsual(connection)) {
            return inTransaction(connection, () -> {
                ReadCommitted.begin(connection);
                return work.run();
            });
        }
        try {
            T result = work.run();
            DatabaseContact.made();
            return result;
        } catch (SQLException | RuntimeException | Error e) {
            restore(connection, e);
            throw e;
        }
    }

    /** Ends what a failure has left of a transaction; where that is impossible the connection may not be used again. */
    private static void restore(Connection connection, Throwable cause) {
        try {
            if (cause instanceof Error) {
                // What the driver had read or sent by then is unknown.
                connection.abort(Runnable::run);
            } else if (!connection.isClosed() && !connection.getAutoCommit()) {
                connection.rollback();
            }
        } catch (SQLException | RuntimeException | Error e) {
            cause.addSuppressed(e);
        }
    }

    /**
     * As {@link #call(DataSource, String, StatementCall)}, but gives up, and breaks the connection, when the server
     * sends nothing for so long: a connection may be dead without any sign. What the statement did is unknown then. A
     * server that is only slow is asked shortly before to cancel the statement, so that it does not continue in the
     * background.
     */
    public static <T extends @Nullable Object> T call(
            DataSource dataSource, String sql, Duration answerLimit, StatementCall<T> call) throws SQLException {
        return StaleConnections.replacing(
                dataSource,
                connection -> NetworkTimeout.limiting(
                        connection,
                        answerLimit,
                        () -> call(connection, sql, (same, statement) -> {
                            if (answerLimit.compareTo(SHORTEST_CANCELLED) >= 0) {
                                statement.setQueryTimeout((int) answerLimit.toSeconds() - 1);
                            }
                            return call.on(same, statement);
                        })));
    }

    /**
     * Runs several statements in one transaction, READ COMMITTED, on a connection from the pool. As {@link #call(DataSource, String,
     * Duration, StatementCall)}, it gives up when the server sends nothing for so long.
     */
    public static <T> T transact(DataSource dataSource, Duration answerLimit, StaleConnections.Work<T> work)
            throws SQLException {
        return StaleConnections.replacing(
                dataSource,
                connection -> NetworkTimeout.limiting(
                        connection,
                        answerLimit,
                        () -> inTransaction(connection, () -> {
                            ReadCommitted.begin(connection);
                            return work.on(connection);
                        })));
    }

    /** Runs several statements on a connection that is in no transaction, commits them, and leaves it as it was. */
    public static <T extends @Nullable Object> T inTransaction(Connection connection, SqlWork<T> work)
            throws SQLException {
        boolean autoCommit = connection.getAutoCommit();
        if (autoCommit) {
            connection.setAutoCommit(false);
        }
        try {
            T result = work.run();
            connection.commit();
            DatabaseContact.made();
            return result;
        } catch (SQLException | RuntimeException | Error e) {
            restore(connection, e);
            throw e;
        } finally {
            if (autoCommit && !connection.isClosed()) {
                connection.setAutoCommit(true);
            }
        }
    }
}
