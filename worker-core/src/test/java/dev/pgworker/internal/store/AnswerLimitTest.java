package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;

import com.zaxxer.hikari.HikariDataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;

import dev.pgworker.internal.jdbc.AnswerLimit;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

class AnswerLimitTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    @Test
    @Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD) // no interrupt ends a wait for the server
    void aStatementWithoutAnAnswerGivesUpAndLeavesNoTraceOnOtherConnections() throws Exception {
        db.sql("insert into {schema}._private_job_queues (queue_name, locked_at, locked_by) values ('q', now(), 'w')")
                .update();
        try (HikariDataSource pool = TestSchema.pool(1);
                Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            JobStore store = new JobStore(
                    pool, db.schema(), "w", new AnswerLimit(Duration.ofMillis(300), Duration.ofMillis(300)));
            JobStore patient =
                    new JobStore(pool, db.schema(), "w", new AnswerLimit(Duration.ofMinutes(1), Duration.ofMinutes(1)));
            other.setAutoCommit(false);
            statement.execute(db.schema().in("lock table {schema}._private_jobs in access exclusive mode"));

            assertThatThrownBy(() -> store.holdings().isHeld(new Claim(1, Instant.EPOCH), RenewedLocks.UNCHANGED))
                    .isInstanceOf(SQLException.class)
                    .satisfies(e -> assertThat(((SQLException) e).getSQLState()).startsWith("08"));

            other.rollback();
            assertThat(patient.holdings().heldQueues(Duration.ofSeconds(60))).hasSizeLessThanOrEqualTo(1);
            try (Connection connection = pool.getConnection()) {
                assertThat(connection.getNetworkTimeout()).isZero();
            }
        }
    }

    /** HikariCP would put right what is forgotten. */
    @Test
    void afterAnAnswerTheConnectionIsAsItWas() throws Exception {
        SingleConnectionDataSource one = new SingleConnectionDataSource(TestPostgres.jdbcUrl(), true);
        try {
            one.getConnection().setNetworkTimeout(Runnable::run, 70_000);

            new JobStore(one, db.schema(), "w", new AnswerLimit(Duration.ofSeconds(60), Duration.ofSeconds(60)))
                    .holdings()
                    .heldQueues(Duration.ofSeconds(60));

            assertThat(one.getConnection().getNetworkTimeout()).isEqualTo(70_000);
        } finally {
            one.destroy();
        }
    }
}
