package dev.pgworker.internal.jdbc;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;

import org.jspecify.annotations.Nullable;

/** How long a connection waits for the server's next answer, before it takes itself for broken. */
public final class NetworkTimeout {

    private NetworkTimeout() {}

    /**
     * Runs statements of which none may wait for its answer for longer than the limit, or than the connection's own if that is
     * shorter: the connection breaks then. Its own limit holds again afterwards.
     */
    public static <T extends @Nullable Object> T limiting(Connection connection, Duration answerLimit, SqlWork<T> work)
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
}
