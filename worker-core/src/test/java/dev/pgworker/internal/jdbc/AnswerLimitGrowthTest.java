package dev.pgworker.internal.jdbc;

import java.sql.SQLException;
import java.time.Duration;

import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

@Tag("any-postgres")
class AnswerLimitGrowthTest {

    private static final String SLEEP = "select pg_sleep(?)";

    private final AnswerLimit limit = new AnswerLimit(Duration.ofMillis(400), Duration.ofSeconds(50));

    private static void sleep(AnswerLimit limit, HikariDataSource pool, double seconds) throws SQLException {
        limit.call(pool, SLEEP, (connection, statement) -> {
            statement.setDouble(1, seconds);
            return statement.execute();
        });
    }

    @Test
    void aSlowStatementSucceedsAtLastAndAFastOneBringsTheUsualTimeBack() throws SQLException {
        try (HikariDataSource pool = TestSchema.pool(2)) {
            assertThatThrownBy(() -> sleep(limit, pool, 1.2)).isInstanceOf(SQLException.class);
            assertThat(limit.of(SLEEP)).isEqualTo(Duration.ofMillis(800));
            assertThatThrownBy(() -> sleep(limit, pool, 1.2)).isInstanceOf(SQLException.class);
            assertThat(limit.of(SLEEP)).isEqualTo(Duration.ofMillis(1_600));
            for (int i = 0; i < 5; i++) {
                limit.note(SLEEP, limit.of(SLEEP), limit.of(SLEEP), false);
            }
            assertThat(limit.of(SLEEP)).isEqualTo(Duration.ofSeconds(50));

            sleep(limit, pool, 1.2);
            assertThat(limit.of(SLEEP)).isEqualTo(Duration.ofSeconds(50));
            assertThat(limit.of("select 1")).isEqualTo(Duration.ofMillis(400));

            Awaitility.await().until(() -> {
                sleep(limit, pool, 0);
                return limit.of(SLEEP).equals(Duration.ofMillis(400));
            });
        }
    }

    @Test
    void aFailureInTimeChangesNothing() {
        limit.note("a", Duration.ofMillis(400), Duration.ofMillis(10), false);
        assertThat(limit.of("a")).isEqualTo(Duration.ofMillis(400));
    }

    /** Otherwise it would go on beside its own repetitions. */
    @Test
    void aSlowServerIsToldToCancelTheStatement() throws SQLException {
        AnswerLimit cancelling = new AnswerLimit(Duration.ofSeconds(2), Duration.ofSeconds(2));
        try (HikariDataSource pool = TestSchema.pool(1)) {
            assertThatThrownBy(() -> sleep(cancelling, pool, 30))
                    .isInstanceOfSatisfying(
                            SQLException.class, e -> assertThat(e.getSQLState()).isEqualTo("57014"));
        }
    }
}
