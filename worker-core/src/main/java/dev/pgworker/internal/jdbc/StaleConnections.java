package dev.pgworker.internal.jdbc;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.function.Consumer;
import javax.sql.DataSource;

import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.HikariPoolMXBean;
import org.jspecify.annotations.Nullable;
import org.postgresql.util.PSQLException;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;

/**
 * Throws away connections that lead to a server which is no longer the one to talk to. Where one connection of a pool
 * does, those opened at the same time probably do, too: HikariCP is asked to replace all of them, other pools lose them
 * one by one.
 */
public final class StaleConnections {

    private static final Logger log = WorkerLog.of(StaleConnections.class);

    private static final String READ_ONLY = "25006";

    private static final String TRIGGERED_ACTION = "09000";

    /** More than a pool usually has. */
    private static final int MOST_REPLACED = 100;

    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(5);

    private static final long SHORTEST_INTERVAL_NANOS = Duration.ofSeconds(1).toNanos();

    private static final boolean HIKARI_PRESENT = isHikariPresent();

    private static final Map<DataSource, Long> replacedAt = Collections.synchronizedMap(new WeakHashMap<>());

    private StaleConnections() {}

    private static boolean isHikariPresent() {
        try {
            Class.forName("com.zaxxer.hikari.HikariDataSource", false, StaleConnections.class.getClassLoader());
            return true;
        } catch (ClassNotFoundException | LinkageError e) {
            return false;
        }
    }

    /** What is done on a connection, in a transaction of its own. */
    @FunctionalInterface
    public interface Work<T extends @Nullable Object> {
        T on(Connection connection) throws SQLException;
    }

    /** Does work on a connection of the data source, and again on others as long as these are older than the call and read-only. */
    public static <T extends @Nullable Object> T replacing(DataSource dataSource, Work<T> work) throws SQLException {
        long begin = System.nanoTime();
        for (int replaced = 0; ; replaced++) {
            try (Connection connection = dataSource.getConnection()) {
                try {
                    return work.on(connection);
                } catch (SQLException e) {
                    if (!READ_ONLY.equals(e.getSQLState())) {
                        if (saysWronglyThatItGoesDown(e)) {
                            throw aboutARow(e);
                        }
                        discardAfter(dataSource, e);
                        throw e;
                    }
                    long took = System.nanoTime() - begin;
                    ReadOnly server = NetworkTimeout.limiting(connection, ANSWER_LIMIT, () -> ReadOnly.ask(connection));
                    if (!server.readOnly) {
                        throw aboutARow(e);
                    }
                    throwAway(dataSource, connection);
                    discardAfter(dataSource, e);
                    if (!server.openedBefore(took) || replaced >= MOST_REPLACED) {
                        throw new SQLException(server.description(), READ_ONLY, e);
                    }
                }
            }
        }
    }

    /**
     * A server that goes down breaks the connection, which the driver adds as the next exception. Otherwise it has
     * shown that it is ready for another statement: a trigger has raised an error of this name.
     */
    private static boolean saysWronglyThatItGoesDown(SQLException e) {
        return e instanceof PSQLException answer
                && answer.getServerErrorMessage() != null
                && answer.getSQLState() != null
                && answer.getSQLState().startsWith("57P")
                && answer.getNextException() == null;
    }

    /** Returns the same without a SQLSTATE that stands for an outage. */
    private static SQLException aboutARow(SQLException e) {
        return new SQLException(
                "A trigger or the like answered SQLSTATE " + e.getSQLState() + ", though the server works: "
                        + e.getMessage(),
                TRIGGERED_ACTION,
                e);
    }

    /**
     * A pool notices at the latest when it gets the connection back that it is broken, and may throw an exception.
     * HikariCP would log that each time, unless the connection was evicted before.
     */
    private static void throwAway(DataSource dataSource, Connection connection) throws SQLException {
        if (HIKARI_PRESENT) {
            Hikari.evict(dataSource, connection);
        }
        connection.abort(Runnable::run);
        try {
            connection.close();
        } catch (SQLException e) {
            log.debug("The connection is closed", e);
        }
    }

    /**
     * What a server reports of itself that refused to write.
     *
     * @param readOnly whether it refuses to write anything
     * @param standby whether it follows another server
     * @param ageSeconds how long ago the connection was opened
     */
    private record ReadOnly(boolean readOnly, boolean standby, double ageSeconds) {

        static ReadOnly ask(Connection connection) throws SQLException {
            endTransaction(connection);
            try (Statement statement = connection.createStatement();
                    ResultSet row = statement.executeQuery(
                            "select pg_catalog.current_setting('transaction_read_only')::pg_catalog.bool,"
                                    + " pg_catalog.pg_is_in_recovery(),"
                                    + " extract(epoch from pg_catalog.clock_timestamp() - backend_start)"
                                    + " from pg_catalog.pg_stat_activity where pid = pg_catalog.pg_backend_pid()")) {
                return row.next()
                        ? new ReadOnly(row.getBoolean(1), row.getBoolean(2), row.getDouble(3))
                        : new ReadOnly(true, false, 0);
            } finally {
                endTransaction(connection);
            }
        }

        private static void endTransaction(Connection connection) throws SQLException {
            if (!connection.getAutoCommit()) {
                connection.rollback();
            }
        }

        boolean openedBefore(long nanosAgo) {
            return ageSeconds > nanosAgo / 1e9;
        }

        String description() {
            return standby
                    ? "The server is a standby (pg_is_in_recovery), which is read-only"
                    : "The server is read-only (default_transaction_read_only)";
        }
    }

    /**
     * Has the pool replace its connections if the failure shows that they are probably no good: one broke, or its
     * server goes down or is read-only. Connections in use are replaced when they are returned. At most once a second.
     * May be called from any thread.
     */
    public static void discardAfter(DataSource dataSource, Throwable failure) {
        if (!HIKARI_PRESENT || !isBroken(failure)) {
            return;
        }
        long now = System.nanoTime();
        Long last = replacedAt.get(dataSource);
        if (last == null || now - last >= SHORTEST_INTERVAL_NANOS) {
            replacedAt.put(dataSource, now);
            Hikari.evict(dataSource);
        }
    }

    private static boolean isBroken(Throwable failure) {
        Throwable current = failure;
        for (int depth = 0; current != null && depth < 20; depth++) {
            if (current instanceof SQLException e && e.getSQLState() != null) {
                String state = e.getSQLState();
                return state.startsWith("08") || state.startsWith("57P") || state.equals(READ_ONLY);
            }
            current = current.getCause();
        }
        return false;
    }

    /** Apart, so that the outer class loads without HikariCP. */
    private static final class Hikari {

        static void evict(DataSource dataSource) {
            tell(dataSource, pool -> {
                HikariPoolMXBean connections = pool.getHikariPoolMXBean();
                if (connections != null) {
                    connections.softEvictConnections();
                }
            });
        }

        static void evict(DataSource dataSource, Connection connection) {
            tell(dataSource, pool -> pool.evictConnection(connection));
        }

        private static void tell(DataSource dataSource, Consumer<HikariDataSource> what) {
            try {
                if (dataSource.isWrapperFor(HikariDataSource.class)) {
                    what.accept(dataSource.unwrap(HikariDataSource.class));
                }
            } catch (SQLException | RuntimeException e) {
                log.debug("The pool's connections could not be replaced", e);
            }
        }
    }
}
