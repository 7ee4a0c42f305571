package dev.pgworker.autoconfigure;

import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;

/**
 * The driver's data source, which logs in as a pool does at that time, and does to each connection what HikariCP does to its own, in the
 * same order. It supplies copies of itself.
 */
final class InitializedDataSource extends PGSimpleDataSource implements Supplier<PGSimpleDataSource> {

    private static final long serialVersionUID = 1L;

    private final transient Supplier<@Nullable JdbcConnectionDetails> login;
    private final int isolation;
    private final @Nullable String connectionSchema;
    private final @Nullable String initSql;

    /**
     * Creates a data source without an address.
     *
     * @param login returns user and password for the next connection; null for those of this data source
     * @param isolation the isolation of transactions, as JDBC numbers it; negative for the server's default
     */
    InitializedDataSource(
            Supplier<@Nullable JdbcConnectionDetails> login,
            int isolation,
            @Nullable String connectionSchema,
            @Nullable String initSql) {
        this.login = login;
        this.isolation = isolation;
        this.connectionSchema = connectionSchema;
        this.initSql = initSql;
    }

    @Override
    public PGSimpleDataSource get() {
        InitializedDataSource copy = new InitializedDataSource(login, isolation, connectionSchema, initSql);
        try {
            copy.initializeFrom(this);
            return copy;
        } catch (IOException | ClassNotFoundException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public Connection getConnection() throws SQLException {
        JdbcConnectionDetails now = login.get();
        return now == null ? super.getConnection() : getConnection(now.getUsername(), now.getPassword());
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
