package dev.pgworker.internal.jdbc;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.function.Function;

import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.simple.JdbcClient;

/** Transactions on one connection apart from that of the caller's transaction, one after the other. */
public final class OwnTransactions {

    private final Connection connection;
    private final Translator translator;

    /** Makes of a failure what the caller gets. */
    @FunctionalInterface
    interface Translator {
        DataAccessException translate(SQLException e);
    }

    OwnTransactions(Connection connection, Translator translator) {
        this.connection = connection;
        this.translator = translator;
    }

    /** Does something in a transaction, which is committed on return and rolled back if anything is thrown. */
    public <T> T run(Function<JdbcClient, T> work) {
        try {
            return Connections.inTransaction(
                    connection,
                    () -> BoundClient.with(connection, null, (task, sql, e) -> translator.translate(e), work));
        } catch (SQLException e) {
            throw translator.translate(e);
        }
    }
}
