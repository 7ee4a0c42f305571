package dev.pgworker.store;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

/** Runs statements in transactions of their own, whatever the pool's auto-commit default is. */
final class Connections {

    private Connections() {}

    /** Runs one statement on a connection from the pool and commits it. */
    static <T extends @Nullable Object> T call(DataSource dataSource, String sql, JobStore.Call<T> call)
            throws SQLException {
        try (Connection connection = dataSource.getConnection();
                PreparedStatement statement = connection.prepareStatement(sql)) {
            T result = call.on(connection, statement);
            if (!connection.getAutoCommit()) {
                connection.commit();
            }
            return result;
        }
    }

    /** The driver waits for so long for its request to end a statement. Shorter limits are kept by breaking the connection. */
    private static final Duration LEAST_CANCELLED = Duration.ofSeconds(30);

    /** How long before the connection breaks the server is asked to end the statement. */
    private static final Duration CANCEL_AHEAD = Duration.ofSeconds(5);

    /**
     * As {@link #call(DataSource, String, JobStore.Call)}, but gives up, and breaks the connection, when the server sends
     * nothing for so long: a connection may be dead without anybody having said so. What the statement did is unknown then.
     * Shortly before, the server is asked to end the statement, so that it does not go on after its client has given up; not
     * so with limits below half a minute, which are for statements that do little.
     */
    static <T extends @Nullable Object> T call(
            DataSource dataSource, String sql, Duration answerLimit, JobStore.Call<T> call) throws SQLException {
        return call(dataSource, sql, (connection, statement) -> {
            if (answerLimit.compareTo(LEAST_CANCELLED) >= 0) {
                statement.setQueryTimeout((int) answerLimit.minus(CANCEL_AHEAD).toSeconds());
            }
            return answered(connection, answerLimit, () -> call.on(connection, statement));
        });
    }

    /** Runs statements of which none may wait for its answer for longer than the limit: the connection breaks then. */
    static <T extends @Nullable Object> T answered(Connection connection, Duration answerLimit, Work<T> work)
            throws SQLException {
        int limit = (int) answerLimit.toMillis();
        int usual = connection.getNetworkTimeout();
        if (usual > 0 && usual <= limit) {
            return work.run();
        }
        connection.setNetworkTimeout(Runnable::run, limit);
        try {
            return work.run();
        } finally {
            if (!connection.isClosed()) {
                connection.setNetworkTimeout(Runnable::run, usual);
            }
        }
    }

    /** Something that may fail. */
    @FunctionalInterface
    interface Work<T extends @Nullable Object> {
        T run() throws SQLException;
    }

    /** Runs several statements on a connection that is in no transaction, commits them, and leaves it as it was. */
    static <T> T inTransaction(Connection connection, Work<T> work) throws SQLException {
        boolean autoCommit = connection.getAutoCommit();
        if (autoCommit) {
            connection.setAutoCommit(false);
        }
        try {
            T result = work.run();
            connection.commit();
            return result;
        } catch (SQLException | RuntimeException | Error e) {
            rollback(connection, e);
            throw e;
        } finally {
            if (autoCommit && !connection.isClosed()) {
                connection.setAutoCommit(true);
            }
        }
    }

    private static void rollback(Connection connection, Throwable cause) {
        try {
            connection.rollback();
        } catch (SQLException e) {
            cause.addSuppressed(e);
        }
    }
}
