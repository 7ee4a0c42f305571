package dev.pgworker;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.jdbc.datasource.DelegatingDataSource;

import dev.pgworker.job.Task;
import dev.pgworker.store.JobsTable;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

class VacuumTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema(10);

    @Test
    void aWorkerThatFinishesManyJobsVacuumsTheirTable() {
        db.start(db.worker().task(WORK, (n, context) -> {}));
        db.sql("""
                        select count(*) from {schema}.add_jobs(array(
                          select ('work', '1', null, null, null, null, null, null)::{schema}.job_spec from generate_series(1, 25000)))
                        """).query(Long.class).single();

        Awaitility.await()
                .atMost(Duration.ofSeconds(60))
                .pollInterval(Duration.ofMillis(200))
                .until(() -> vacuums() > 0);
    }

    @Test
    void vacuumsWhatItIsToldAndLeavesTheConnectionAsItWas() throws Exception {
        JobsTable table = new JobsTable(db.dataSource(), db.schema());
        assertThat(table.mayVacuum()).isTrue();
        assertThat(table.sinceVacuum()).isNull();

        try (Connection connection = db.dataSource().getConnection()) {
            connection.setAutoCommit(false);
            JobsTable inTransactions = new JobsTable(new SingleConnection(connection), db.schema());
            inTransactions.vacuum();
            assertThat(connection.getAutoCommit()).isFalse();
            connection.setAutoCommit(true);
        }

        Awaitility.await().until(() -> table.sinceVacuum() != null);
        assertThat(table.sinceVacuum()).isLessThan(Duration.ofMinutes(1));
    }

    @Test
    void knowsWhenItsRoleMayNot() throws Exception {
        String role = db.schema().name() + "_stranger";
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("create role " + role);
            statement.execute(db.schema().in("grant usage on schema {schema} to " + role));
            try {
                statement.execute("set role " + role);
                assertThat(new JobsTable(new SingleConnection(connection), db.schema()).mayVacuum())
                        .isFalse();
            } finally {
                statement.execute("reset role");
                statement.execute("drop owned by " + role);
                statement.execute("drop role " + role);
            }
        }
    }

    private long vacuums() {
        return db.sql("select pg_stat_get_vacuum_count('{schema}._private_jobs'::regclass)")
                .query(Long.class)
                .single();
    }

    /** Hands out one connection that closing leaves open. */
    private static final class SingleConnection extends DelegatingDataSource {

        private final Connection connection;

        SingleConnection(Connection connection) {
            this.connection = connection;
        }

        @Override
        public Connection getConnection() throws SQLException {
            return new org.springframework.jdbc.datasource.SingleConnectionDataSource(connection, true).getConnection();
        }
    }
}
