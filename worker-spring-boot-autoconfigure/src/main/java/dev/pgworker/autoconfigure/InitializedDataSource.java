package dev.pgworker.autoconfigure;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;

import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;

/** The driver's data source, with what HikariCP does to each of its connections, in the same order. */
final class InitializedDataSource extends PGSimpleDataSource {

    private static final long serialVersionUID = 1L;

    private final int isolation;
    private final @Nullable String connectionSchema;
    private final @Nullable String initSql;

    /**
     * Creates a data source without an address.
     *
     * @param isolation the isolation of transactions, as JDBC numbers it; negative for the server's default
     */
    InitializedDataSource(int isolation, @Nullable String connectionSchema, @Nullable String initSql) {
        this.isolation = isolation;
        this.connectionSchema = connectionSchema;
        this.initSql = initSql;
    }

    @Override
    public Connection getConnection(@Nullable String user, @Nullable String password) throws SQLException {
        Connection connection = super.getConnection(user, password);
        try {
            initialize(connection);
            return connection;
        } catch (SQLException | RuntimeException | Error e) {
            connection.close();
            throw e;
        }
    }

    private void initialize(Connection connection) throws SQLException {
        if (isolation >= 0) {
            connection.setTransactionIsolation(isolation);
        }
        if (connectionSchema != null) {
            connection.setSchema(connectionSchema);
        }
        if (initSql != null) {
            try (Statement statement = connection.createStatement()) {
                statement.execute(initSql);
            }
        }
    }
}
