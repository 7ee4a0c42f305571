package dev.pgworker.internal.jdbc;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;

import org.postgresql.PGConnection;

/**
 * Has transactions see what others have committed, as the statements of workers need, although a role, a URL or a pool may have
 * set another isolation level. It is set for one transaction each, and so stays on no session.
 */
final class ReadCommitted {

    /** Whether transactions of a session begin at this level; asked once for each session. */
    private static final Map<Object, Boolean> usual = Collections.synchronizedMap(new WeakHashMap<>());

    private ReadCommitted() {}

    /** Returns whether transactions of the connection begin at this level; asks the server if the session is new. */
    static boolean isUsual(Connection connection) throws SQLException {
        Object session =
                connection.isWrapperFor(PGConnection.class) ? connection.unwrap(PGConnection.class) : connection;
        Boolean known = usual.get(session);
        if (known == null) {
            known = connection.getTransactionIsolation() == Connection.TRANSACTION_READ_COMMITTED;
            usual.put(session, known);
        }
        return known;
    }

    /**
     * Begins a transaction on a connection that is not in auto-commit mode, and of which what it may have begun is not
     * needed.
     */
    static void begin(Connection connection) throws SQLException {
        if (isUsual(connection)) {
            return;
        }
        connection.rollback();
        try (Statement statement = connection.createStatement()) {
            statement.execute("set transaction isolation level read committed");
        }
    }
}
