package dev.pgworker.internal.jdbc;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;
import org.postgresql.PGStatement;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;

/** Finds out whether a connection pooler, such as PgBouncer, stands before the server, and what it makes of sessions. */
public final class Pooler {

    private static final Logger log = WorkerLog.of(Pooler.class);

    /** So often in a row two connections that share sessions do not get the same ones by chance. */
    private static final int ROUNDS = 10;

    /** A pooler that has no session left for a second connection has it wait. */
    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(3);

    private Pooler() {}

    /**
     * What a worker cannot work with.
     *
     * @param text in complete sentences
     * @param action what to do about it, in complete sentences
     */
    public record Problem(String text, String action) {}

    /**
     * Returns whether the process of the server is not the one that introduced itself when the connection was opened: a pooler
     * did.
     *
     * @param connection in auto-commit mode
     */
    public static boolean isBefore(Connection connection) throws SQLException {
        return connection.isWrapperFor(PGConnection.class)
                && connection.unwrap(PGConnection.class).getBackendPID() != backend(connection);
    }

    /**
     * Returns whether a pooler gives the server's sessions to others between transactions, as far as can be seen.
     *
     * @param connection in auto-commit mode
     * @param source where it is from, and another one is taken from for comparison
     */
    public static boolean sharesSessions(Connection connection, DataSource source) throws SQLException {
        if (!isBefore(connection)) {
            return false;
        }
        try (Connection other = source.getConnection()) {
            boolean autoCommit = other.getAutoCommit();
            if (!autoCommit) {
                other.setAutoCommit(true);
            }
            try {
                return NetworkTimeout.limiting(other, ANSWER_LIMIT, () -> isShared(connection, other));
            } finally {
                if (!autoCommit && !other.isClosed()) {
                    other.setAutoCommit(false);
                }
            }
        } catch (SQLException e) {
            if (connection.isClosed()) {
                throw e;
            }
            log.debug("There is no second connection to compare with", e);
            return false;
        }
    }

    private static boolean isShared(Connection one, Connection other) throws SQLException {
        Set<Integer> ofOne = new HashSet<>();
        Set<Integer> ofOther = new HashSet<>();
        for (int i = 0; i < ROUNDS; i++) {
            ofOne.add(backend(one));
            ofOther.add(backend(other));
            if (ofOne.size() > 1 || ofOther.size() > 1 || ofOne.equals(ofOther)) {
                return true;
            }
        }
        return false;
    }

    private static int backend(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery("select pg_catalog.pg_backend_pid()")) {
            row.next();
            return row.getInt(1);
        }
    }

    /**
     * Returns why a worker cannot work behind the pooler; null if it can, or if there is none.
     *
     * @param connection in auto-commit mode
     * @param source where it is from
     * @throws SQLException if the database cannot be used
     */
    public static @Nullable Problem problem(Connection connection, DataSource source) throws SQLException {
        if (!isBefore(connection)) {
            return null;
        }
        boolean named;
        try {
            named = passesNamesOn(connection);
        } catch (SQLException e) {
            if (String.valueOf(e.getMessage()).contains("statement pooling")) {
                return new Problem(
                        "The connection pooler allows no transactions (pool_mode=statement in PgBouncer), which the"
                                + " worker needs.",
                        "Use pool_mode=transaction or pool_mode=session, or an address of PostgreSQL itself.");
            }
            throw e;
        }
        return named && sharesSessions(connection, source)
                ? new Problem(
                        "The connection pooler gives the server's sessions to others between transactions, and passes on"
                                + " to them statements that the driver has prepared.",
                        "Add prepareThreshold=0 to the JDBC URL, or use PgBouncer 1.21 or later with"
                                + " max_prepared_statements, or an address of PostgreSQL itself.")
                : null;
    }

    /**
     * Returns whether a statement that the driver prepares has the driver's name on the server, and removes it again. The driver's own
     * commit would be prepared, too.
     */
    private static boolean passesNamesOn(Connection connection) throws SQLException {
        boolean prepares = connection.unwrap(PGConnection.class).getPrepareThreshold() > 0;
        try (Statement plain = connection.createStatement()) {
            plain.execute("begin");
            String name = prepares ? nameOfPrepared(connection) : null;
            if (name != null) {
                plain.execute("deallocate \"" + name + "\"");
            }
            plain.execute("commit");
            return name != null;
        }
    }

    private static @Nullable String nameOfPrepared(Connection connection) throws SQLException {
        String sql = "select s.name from pg_catalog.pg_prepared_statements s"
                + " where s.name ~ '^S_[0-9]+$' and pg_catalog.strpos(s.statement, 'pgworker " + System.nanoTime()
                + "') > 0";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.unwrap(PGStatement.class).setPrepareThreshold(1);
            try (ResultSet row = statement.executeQuery()) {
                return row.next() ? row.getString(1) : null;
            }
        }
    }
}
