package dev.pgworker.internal.jdbc;

import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import javax.sql.DataSource;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.jdbc.datasource.DelegatingDataSource;

import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** At which level statements of workers run, and what they leave on a session. */
class ReadCommittedTest {

    private static final String LEVELS =
            "select current_setting('transaction_isolation') || ', ' || current_setting('default_transaction_isolation')";

    private static String levels(DataSource dataSource) throws SQLException {
        return Connections.call(dataSource, LEVELS, Duration.ofSeconds(10), (connection, statement) -> {
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getString(1);
            }
        });
    }

    private static HikariDataSource pool(String level, boolean autoCommit) {
        HikariConfig config = TestSchema.poolConfig(TestPostgres.jdbcUrl(), 1);
        config.setTransactionIsolation(level);
        config.setAutoCommit(autoCommit);
        return new HikariDataSource(config);
    }

    @ParameterizedTest
    @CsvSource({"SERIALIZABLE, true", "SERIALIZABLE, false", "REPEATABLE_READ, true"})
    void theLevelOfASessionHoldsForOthersOnly(String level, boolean autoCommit) throws SQLException {
        String name = level.toLowerCase(Locale.ROOT).replace('_', ' ');
        try (HikariDataSource pool = pool("TRANSACTION_" + level, autoCommit)) {
            for (int i = 0; i < 3; i++) {
                assertThat(levels(pool)).isEqualTo("read committed, " + name);
                try (Connection connection = pool.getConnection()) {
                    assertThat(connection.getAutoCommit()).isEqualTo(autoCommit);
                    try (ResultSet row = connection.createStatement().executeQuery(LEVELS)) {
                        row.next();
                        assertThat(row.getString(1)).isEqualTo(name + ", " + name);
                    }
                }
            }
            assertThat(Connections.<Integer>transact(
                            pool, Duration.ofSeconds(10), connection -> connection.getTransactionIsolation()))
                    .isEqualTo(Connection.TRANSACTION_READ_COMMITTED);
        }
    }

    @Test
    void whereItIsReadCommittedAStatementIsAllThatIsSent() throws SQLException {
        List<String> calls = new ArrayList<>();
        try (HikariDataSource pool = pool("TRANSACTION_READ_COMMITTED", true)) {
            DataSource watched = new DelegatingDataSource(pool) {
                @Override
                public Connection getConnection() throws SQLException {
                    Connection connection = super.getConnection();
                    return (Connection) Proxy.newProxyInstance(
                            getClass().getClassLoader(), new Class<?>[] {Connection.class}, (proxy, method, args) -> {
                                calls.add(method.getName());
                                return method.invoke(connection, args);
                            });
                }
            };
            assertThat(levels(watched)).isEqualTo("read committed, read committed");
            assertThat(calls).containsOnlyOnce("getTransactionIsolation");
            calls.clear();

            levels(watched);

            assertThat(calls)
                    .containsOnly(
                            "getAutoCommit",
                            "isWrapperFor",
                            "unwrap",
                            "getNetworkTimeout",
                            "setNetworkTimeout",
                            "prepareStatement",
                            "isClosed",
                            "close");
        }
    }
}
