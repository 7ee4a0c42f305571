package dev.pgworker.internal.jdbc;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.function.Function;
import javax.sql.DataSource;

import org.postgresql.util.PSQLException;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.UncategorizedSQLException;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.ConnectionHolder;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.jdbc.support.SQLExceptionTranslator;
import org.springframework.jdbc.support.SQLStateSQLExceptionTranslator;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * Runs an application's calls on the connection of its Spring transaction, or apart from it, with Spring's exceptions, which name
 * what was done and quote no payload.
 */
public final class ClientConnections {

    private final DataSource dataSource;
    private final SQLExceptionTranslator translator = new SQLStateSQLExceptionTranslator();

    /** Creates what takes connections from a data source, whose Spring transactions it joins. */
    public ClientConnections(DataSource dataSource) {
        this.dataSource = dataSource;
    }

    /** What is done on the connection of the caller's transaction. */
    @FunctionalInterface
    public interface Work<T> {
        T on(Connection connection) throws SQLException;
    }

    /**
     * Joins the caller's transaction; without one, or after its completion, the work is committed on return.
     *
     * @param task what is done, for the message of an exception
     * @param manyStatements whether the work needs a transaction for itself, which costs a round trip
     */
    public <T> T call(String task, boolean manyStatements, Work<T> work) {
        Connection connection = DataSourceUtils.getConnection(dataSource);
        try {
            return joins(connection) || (connection.getAutoCommit() && !manyStatements)
                    ? work.on(connection)
                    : Connections.inTransaction(connection, () -> work.on(connection));
        } catch (SQLException e) {
            throw translate(task, e);
        } finally {
            DataSourceUtils.releaseConnection(connection, dataSource);
        }
    }

    /** Returns whether this connection, with which {@link #call} works, is that of a Spring transaction of the caller's. */
    public boolean joins(Connection connection) {
        return DataSourceUtils.isConnectionTransactional(connection, dataSource) && !isCompleted();
    }

    /** Callbacks after completion, as of event listeners, still see the transaction, but it is not committed again. */
    private static boolean isCompleted() {
        return TransactionSynchronizationManager.isActualTransactionActive()
                && !TransactionSynchronizationManager.isSynchronizationActive();
    }

    /** As {@link #call}, with Spring's client on that connection. */
    public <T> T query(String task, boolean manyStatements, Function<JdbcClient, T> work) {
        return call(
                task,
                manyStatements,
                connection -> BoundClient.with(connection, dataSource, (unused, sql, e) -> translate(task, e), work));
    }

    /**
     * As {@link #query}, in one transaction with everything that the work has others do on this data source, as if the caller had begun it.
     *
     * @throws IllegalStateException if called back after the end of a transaction, whose connection others would not share
     */
    public <T> T together(String task, Function<JdbcClient, T> work) {
        if (isCompleted()) {
            throw new IllegalStateException(
                    "To " + task + " after the end of a transaction, begin another one (Propagation.REQUIRES_NEW)");
        }
        return call(task, false, connection -> {
            boolean binds = !TransactionSynchronizationManager.hasResource(dataSource);
            if (binds) {
                TransactionSynchronizationManager.bindResource(dataSource, new ConnectionHolder(connection));
            }
            try {
                SqlWork<T> bound =
                        () -> BoundClient.with(connection, dataSource, (unused, sql, e) -> translate(task, e), work);
                return connection.getAutoCommit() ? Connections.inTransaction(connection, bound) : bound.run();
            } finally {
                if (binds) {
                    TransactionSynchronizationManager.unbindResource(dataSource);
                }
            }
        });
    }

    /** Works in transactions of its own, whatever becomes of the caller's. */
    public <T> T apart(String task, Function<OwnTransactions, T> work) {
        try (Connection connection = independent(dataSource).getConnection()) {
            return work.apply(new OwnTransactions(connection, e -> translate(task, e)));
        } catch (SQLException e) {
            throw translate(task, e);
        }
    }

    /** Connections of a transaction-aware proxy may be those of the caller's transaction, which must not be ended. */
    private static DataSource independent(DataSource dataSource) {
        DataSource target =
                dataSource instanceof TransactionAwareDataSourceProxy proxy ? proxy.getTargetDataSource() : null;
        return target == null ? dataSource : independent(target);
    }

    /** Does something when what has been done is committed: at once, unless the caller is in a transaction. */
    public static void afterCommit(Runnable action) {
        if (!TransactionSynchronizationManager.isActualTransactionActive()
                || !TransactionSynchronizationManager.isSynchronizationActive()) {
            action.run();
            return;
        }
        TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {
            @Override
            public void afterCommit() {
                action.run();
            }
        });
    }

    private DataAccessException translate(String task, SQLException answer) {
        SQLException e = withoutPayload(answer);
        // For a missing schema or table, or a right not granted, Spring's text leaves out the server's message.
        boolean named = e.getSQLState() != null && e.getSQLState().startsWith("42");
        String message = named ? task + ": " + e.getMessage() : task;
        DataAccessException translated = translator.translate(message, null, e);
        return translated == null ? new UncategorizedSQLException(message, null, e) : translated;
    }

    /** The details of a server's message about a value or a row quote it. */
    private static SQLException withoutPayload(SQLException e) {
        String state = e.getSQLState();
        boolean quotes = state != null && (state.startsWith("22") || state.equals("23502") || state.equals("23514"));
        if (!quotes || !(e instanceof PSQLException answer) || answer.getServerErrorMessage() == null) {
            return e;
        }
        SQLException bare = new SQLException(answer.getServerErrorMessage().getMessage(), state);
        bare.setStackTrace(e.getStackTrace());
        return bare;
    }
}
