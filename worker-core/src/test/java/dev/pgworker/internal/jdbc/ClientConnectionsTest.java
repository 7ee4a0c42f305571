package dev.pgworker.internal.jdbc;

import java.util.ArrayList;
import java.util.List;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.BadSqlGrammarException;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Whose transaction Spring's client works in, and what becomes of its exceptions. */
class ClientConnectionsTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private int add(JdbcClient client) {
        return client.sql(db.schema().in("insert into {schema}._private_tasks (identifier) values (?)"))
                .param("task " + System.nanoTime())
                .update();
    }

    private long tasks() {
        return db.sql("select count(*) from {schema}._private_tasks")
                .query(Long.class)
                .single();
    }

    @Test
    void theCallersTransactionIsJoined() {
        ClientConnections connections = new ClientConnections(db.dataSource());

        new TransactionTemplate(new JdbcTransactionManager(db.dataSource())).executeWithoutResult(status -> {
            connections.query("add", true, this::add);
            connections.query("add", false, this::add);
            assertThat(tasks()).isEqualTo(2);
            status.setRollbackOnly();
        });

        assertThat(tasks()).isZero();
    }

    @Test
    void withoutATransactionTheWorkIsCommittedWhateverThePoolsAutoCommit() {
        for (boolean autoCommit : new boolean[] {true, false}) {
            HikariConfig config = TestSchema.poolConfig(TestPostgres.jdbcUrl(), 1);
            config.setAutoCommit(autoCommit);
            try (HikariDataSource pool = new HikariDataSource(config)) {
                ClientConnections connections = new ClientConnections(pool);
                connections.query("add", false, this::add);
                connections.query("add", true, this::add);
                connections.apart("add", transactions -> transactions.run(this::add));
            }
        }
        assertThat(tasks()).isEqualTo(6);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whatIsDoneAfterTheEndOfATransactionIsCommittedOnReturn(boolean autoCommit) {
        List<Long> seen = new ArrayList<>();
        HikariConfig config = TestSchema.poolConfig(TestPostgres.jdbcUrl(), 1);
        config.setAutoCommit(autoCommit);
        try (HikariDataSource pool = new HikariDataSource(config)) {
            ClientConnections connections = new ClientConnections(pool);
            TransactionTemplate transactions = new TransactionTemplate(new JdbcTransactionManager(pool));
            for (boolean rollback : new boolean[] {false, true}) {
                transactions.executeWithoutResult(status -> {
                    connections.query("add", false, this::add);
                    if (rollback) {
                        status.setRollbackOnly();
                    }
                    TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {
                        @Override
                        public void afterCompletion(int status) {
                            connections.query("add", false, ClientConnectionsTest.this::add);
                            seen.add(tasks());
                            connections.query("add", true, ClientConnectionsTest.this::add);
                            seen.add(tasks());
                        }
                    });
                });
            }
        }
        assertThat(seen).containsExactly(2L, 3L, 4L, 5L);
        assertThat(tasks()).isEqualTo(5);
    }

    @Test
    void severalStatementsAreKeptOrLostTogether() {
        ClientConnections connections = new ClientConnections(db.dataSource());

        assertThatThrownBy(() -> connections.query("add", true, client -> add(client) + broken(client)))
                .isInstanceOf(BadSqlGrammarException.class);
        assertThatThrownBy(() -> connections.apart(
                        "add", transactions -> transactions.run(client -> add(client) + broken(client))))
                .isInstanceOf(BadSqlGrammarException.class);

        assertThat(tasks()).isZero();
    }

    private static int broken(JdbcClient client) {
        return client.sql("select no_such_column").query(Integer.class).single();
    }

    /** In a transaction of another database what is left behind would stay until its end, with each call more. */
    @Test
    void nothingIsLeftBehindInATransactionOfAnotherDataSource() {
        try (HikariDataSource other = TestSchema.pool(1)) {
            ClientConnections connections = new ClientConnections(db.dataSource());
            new TransactionTemplate(new JdbcTransactionManager(other)).executeWithoutResult(status -> {
                connections.query("add", true, this::add);
                int left =
                        TransactionSynchronizationManager.getSynchronizations().size();

                connections.query("add", true, this::add);
                connections.apart("add", transactions -> transactions.run(this::add));

                assertThat(TransactionSynchronizationManager.getSynchronizations())
                        .hasSize(left);
                assertThat(TransactionSynchronizationManager.getResourceMap()).hasSize(1 + left);
                status.setRollbackOnly();
            });
        }
        assertThat(tasks()).isEqualTo(3);
    }

    @Test
    void whatIsDoneApartOutlivesTheCallersTransaction() {
        ClientConnections connections = new ClientConnections(new TransactionAwareDataSourceProxy(db.dataSource()));

        new TransactionTemplate(new JdbcTransactionManager(db.dataSource())).executeWithoutResult(status -> {
            connections.apart("add", transactions -> transactions.run(this::add));
            status.setRollbackOnly();
        });

        assertThat(tasks()).isEqualTo(1);
    }

    @Test
    void exceptionsNameTheTaskAndQuoteNoValue() {
        ClientConnections connections = new ClientConnections(db.dataSource());

        assertThatThrownBy(() -> connections.query("look at it", false, ClientConnectionsTest::broken))
                .isInstanceOf(BadSqlGrammarException.class)
                .hasMessageContaining("look at it: ")
                .hasMessageContaining("no_such_column");
        assertThatThrownBy(() -> connections.query(
                        "read it",
                        false,
                        client -> client.sql("select ?::json::text")
                                .param("{SECRET")
                                .query(String.class)
                                .single()))
                .isInstanceOf(DataAccessException.class)
                .hasMessageContaining("read it")
                .hasStackTraceContaining("invalid input syntax for type json")
                .satisfies(e -> assertThat(e).hasRootCauseInstanceOf(java.sql.SQLException.class))
                .satisfies(e -> assertThat(String.valueOf(e.getCause())).doesNotContain("SECRET"));
    }
}
