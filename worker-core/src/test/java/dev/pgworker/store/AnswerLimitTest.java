package dev.pgworker.store;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;

import com.zaxxer.hikari.HikariDataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

class AnswerLimitTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    @Test
    @Timeout(60)
    void aStatementWithoutAnAnswerGivesUpAndLeavesNoTraceOnOtherConnections() throws Exception {
        db.sql("insert into {schema}._private_job_queues (queue_name, locked_at, locked_by) values ('q', now(), 'w')")
                .update();
        try (HikariDataSource pool = TestSchema.pool(1);
                Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            JobStore store = new JobStore(pool, db.schema(), "w", List::of, Duration.ofMillis(300));
            other.setAutoCommit(false);
            statement.execute(db.schema().in("select from {schema}._private_job_queues for update"));

            assertThatThrownBy(() -> store.free(List.of("q")))
                    .isInstanceOf(SQLException.class)
                    .satisfies(e -> assertThat(((SQLException) e).getSQLState()).startsWith("08"));

            other.rollback();
            assertThat(store.heldQueues()).hasSizeLessThanOrEqualTo(1);
            try (Connection connection = pool.getConnection()) {
                assertThat(connection.getNetworkTimeout()).isZero();
            }
        }
    }
}
