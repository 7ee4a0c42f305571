package dev.pgworker.engine;

import java.io.IOException;
import java.lang.reflect.Field;
import java.net.SocketTimeoutException;
import java.sql.Connection;
import java.sql.SQLException;

import org.jspecify.annotations.Nullable;
import org.postgresql.core.BaseConnection;
import org.postgresql.core.PGStream;
import org.postgresql.core.QueryExecutorBase;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Waits on a connection that is in no transaction until the server begins a message, and leaves the message to the
 * driver. pgjdbc's own wait returns a millisecond after a notification has come, because it looks whether another one
 * follows; a caller who has waited here can act within that millisecond.
 *
 * <p>Reaches into the driver, which offers no way to do this. Where that fails, the caller does without.
 */
final class MessageArrival {

    private static final Logger log = LoggerFactory.getLogger(MessageArrival.class);

    /** Begins a notification: "NotificationResponse" in the message formats of the PostgreSQL protocol. */
    private static final int NOTIFICATION_RESPONSE = 'A';

    /** What the server has begun to send. */
    enum Message {
        /** Nothing within the time given. */
        NONE,
        NOTIFICATION,
        /** A notice, an error, or the end of the connection: the driver's next read tells. */
        OTHER
    }

    private final PGStream stream;

    private MessageArrival(PGStream stream) {
        this.stream = stream;
    }

    /** Returns what waits on this connection; null if its driver does not let anybody wait. */
    static @Nullable MessageArrival on(Connection connection) {
        try {
            Field stream = QueryExecutorBase.class.getDeclaredField("pgStream");
            stream.setAccessible(true);
            return new MessageArrival((PGStream)
                    stream.get(connection.unwrap(BaseConnection.class).getQueryExecutor()));
        } catch (SQLException | ReflectiveOperationException | RuntimeException | LinkageError e) {
            log.debug("The driver's own wait for notifications is used", e);
            return null;
        }
    }

    /**
     * Waits for a message.
     *
     * @param millis how long at most
     */
    Message await(int millis) throws SQLException {
        try {
            int usual = stream.getNetworkTimeout();
            stream.setNetworkTimeout(millis);
            try {
                return stream.peekChar() == NOTIFICATION_RESPONSE ? Message.NOTIFICATION : Message.OTHER;
            } catch (SocketTimeoutException e) {
                return Message.NONE;
            } finally {
                stream.setNetworkTimeout(usual);
            }
        } catch (IOException e) {
            throw new SQLException("The listening connection broke", "08006", e);
        }
    }
}
