package dev.pgworker.internal.jdbc;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.jdbc.datasource.AbstractDataSource;

import dev.pgworker.internal.failure.WorkerLog;

/**
 * Connections that do not come from the application's pool, so that no part of the worker waits for one behind
 * handlers. Only where the server refuses them, because their role may not log in so or has no connection left, the
 * pool's are used.
 *
 * <p>A connection may be kept open between its uses, so that the next one needs no room on the server: until it breaks, or
 * until {@link #close}. Used by one thread at a time.
 */
public final class PrivateConnections extends AbstractDataSource implements AutoCloseable {

    private static final Logger log = WorkerLog.of(PrivateConnections.class);

    private static final int VALID_WITHIN_SECONDS = 3;

    private final DataSource source;
    private final DataSource pool;
    private final boolean keeps;

    /** Closed by another thread than that which uses it, if that hangs. */
    private volatile @Nullable Connection kept;

    private boolean refusalTold;

    private PrivateConnections(DataSource source, DataSource pool, boolean keeps) {
        this.source = source;
        this.pool = pool;
        this.keeps = keeps;
    }

    /** Returns what opens a connection at each call. */
    public static PrivateConnections of(DataSource source, DataSource pool) {
        return new PrivateConnections(source, pool, false);
    }

    /** Returns what keeps a connection open from the first call on. */
    public static PrivateConnections keeping(DataSource source, DataSource pool) {
        return new PrivateConnections(source, pool, true);
    }

    @Override
    public Connection getConnection() throws SQLException {
        Connection current = kept;
        if (current != null) {
            // It may have lain idle for long, and the server have gone meanwhile: that is no failure.
            if (current.isValid(VALID_WITHIN_SECONDS)) {
                return returning(current);
            }
            close();
        }
        Connection opened = open();
        if (opened == null) {
            return pool.getConnection();
        }
        if (!keeps) {
            return opened;
        }
        kept = opened;
        return returning(opened);
    }

    @Override
    public Connection getConnection(String user, String password) throws SQLException {
        return source.getConnection(user, password);
    }

    /** Returns a connection; null if the server answers and refuses it. */
    private @Nullable Connection open() throws SQLException {
        try {
            Connection opened = source.getConnection();
            refusalTold = false;
            return opened;
        } catch (SQLException e) {
            String state = e.getSQLState();
            if (state != null && (state.startsWith("28") || state.equals("53300"))) {
                if (!refusalTold) {
                    refusalTold = true;
                    log.warn(
                            "The server refuses a separate connection for the worker, which has to wait for connections of the"
                                    + " pool: {}",
                            e.getMessage());
                }
                return null;
            }
            // As a pool does that gives no connection, whatever the reason.
            throw new SQLTransientConnectionException(e.getMessage(), state, e);
        }
    }

    /** Closes the connection that is kept. May be called from any thread. */
    @Override
    public void close() {
        Connection current = kept;
        kept = null;
        if (current != null) {
            try {
                current.close();
            } catch (SQLException e) {
                log.debug("The connection was broken already", e);
            }
        }
    }

    /** A broken connection is closed by its driver, and then another one is opened. */
    private static Connection returning(Connection connection) {
        return (Connection) Proxy.newProxyInstance(
                Connection.class.getClassLoader(), new Class<?>[] {Connection.class}, (proxy, method, args) -> {
                    if (method.getName().equals("close")) {
                        return null;
                    }
                    try {
                        return method.invoke(connection, args);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                });
    }
}
