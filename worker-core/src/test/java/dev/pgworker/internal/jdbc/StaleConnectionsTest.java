package dev.pgworker.internal.jdbc;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import com.zaxxer.hikari.HikariDataSource;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.LoggerFactory;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;

import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** A session that is read-only answers as a standby does. */
@Tag("any-postgres")
class StaleConnectionsTest {

    private static final String WRITE =
            "insert into {schema}._private_tasks (identifier) values (md5(random()::text)::text)";

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private int write(javax.sql.DataSource dataSource) throws SQLException {
        return Connections.call(
                dataSource, db.schema().in(WRITE), (connection, statement) -> statement.executeUpdate());
    }

    /** Fills the pool, long enough before any call that the duration of the call does not blur which came first. */
    private static void makeReadOnly(HikariDataSource pool, int connections) throws SQLException {
        List<Connection> all = new ArrayList<>();
        for (int i = 0; i < connections; i++) {
            Connection connection = pool.getConnection();
            all.add(connection);
            try (Statement statement = connection.createStatement()) {
                statement.execute("set session characteristics as transaction read only");
            }
        }
        try (Statement statement = all.get(0).createStatement()) {
            statement.execute("select pg_sleep(1)");
        }
        for (Connection connection : all) {
            connection.close();
        }
    }

    @Test
    void aPoolThatWasFilledBeforeAFailoverIsReplacedAtOnce() throws SQLException {
        try (HikariDataSource pool = TestSchema.pool(5)) {
            makeReadOnly(pool, 5);

            assertThat(write(pool)).isEqualTo(1);

            assertThat(pool.getHikariPoolMXBean().getTotalConnections()).isLessThan(5);
            for (int i = 0; i < 5; i++) {
                assertThat(write(pool)).isEqualTo(1);
            }
        }
    }

    /** A pool of another make, which cannot be told to replace all: one by one, and each only once. */
    @Test
    void connectionsOfAnyPoolAreThrownAwayWhenTheyAnswerReadOnly() throws SQLException {
        try (HikariDataSource pool = TestSchema.pool(5)) {
            makeReadOnly(pool, 5);
            AtomicInteger taken = new AtomicInteger();
            DelegatingDataSource unknown = new DelegatingDataSource(pool) {
                @Override
                public Connection getConnection() throws SQLException {
                    taken.incrementAndGet();
                    return super.getConnection();
                }

                @Override
                public boolean isWrapperFor(Class<?> type) {
                    return false;
                }
            };

            assertThat(write(unknown)).isEqualTo(1);
            assertThat(taken.get()).isBetween(2, 6);
        }
    }

    @Test
    void aServerThatIsReadOnlyIsNotAskedAgainAndAgain() throws SQLException {
        try (HikariDataSource pool = new HikariDataSource(
                TestSchema.poolConfig(TestPostgres.jdbcUrl() + "&options=-c%20default_transaction_read_only=on", 3))) {
            AtomicInteger taken = new AtomicInteger();
            DelegatingDataSource counting = new DelegatingDataSource(pool) {
                @Override
                public Connection getConnection() throws SQLException {
                    taken.incrementAndGet();
                    return super.getConnection();
                }
            };

            assertThatThrownBy(() -> write(counting)).isInstanceOfSatisfying(SQLException.class, e -> {
                assertThat(e.getSQLState()).isEqualTo("25006");
                assertThat(e.getMessage()).contains("read-only");
            });

            assertThat(taken.get()).isLessThanOrEqualTo(4);
        }
    }

    /** It would be told at each attempt for as long as the server is a standby. */
    @Test
    void thePoolDoesNotLogWhatIsThrownAway() throws SQLException {
        ListAppender<ILoggingEvent> log = new ListAppender<>();
        log.start();
        Logger logger = (Logger) LoggerFactory.getLogger("com.zaxxer.hikari");
        logger.addAppender(log);
        try (HikariDataSource pool = TestSchema.pool(5)) {
            makeReadOnly(pool, 5);
            write(pool);
        } finally {
            logger.detachAppender(log);
        }

        assertThat(log.list)
                .filteredOn(event -> event.getLevel().isGreaterOrEqual(Level.WARN))
                .isEmpty();
    }

    /** A trigger may raise whatever it likes. */
    @ParameterizedTest
    @ValueSource(strings = {"25006", "57P01", "57P02", "57P03"})
    void anErrorOfOneRowIsNoOutageWhateverItIsCalled(String errorCode) throws SQLException {
        db.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as $$
                begin raise exception 'not this one' using errcode = '%s'; end $$;
                create trigger refuse before insert on {schema}._private_tasks for each row execute function {schema}.refuse()
                """.formatted(errorCode)).update();
        SingleConnectionDataSource one = new SingleConnectionDataSource(TestPostgres.jdbcUrl(), true);
        for (boolean autoCommit : new boolean[] {true, false}) {
            one.setAutoCommit(autoCommit);

            assertThatThrownBy(() -> write(one)).isInstanceOfSatisfying(SQLException.class, e -> {
                assertThat(DatabaseFailure.of(e)).isEqualTo(DatabaseFailure.REFUSED);
                assertThat(e.getMessage()).contains(errorCode, "not this one");
            });

            assertThat(one.getConnection().isValid(1)).isTrue();
        }
        one.destroy();
    }

    @Test
    void aConnectionThatTheServerEndsIsAnOutage() throws SQLException {
        SingleConnectionDataSource one = new SingleConnectionDataSource(TestPostgres.jdbcUrl(), true);

        assertThatThrownBy(() -> Connections.call(
                        one,
                        "select pg_terminate_backend(pg_backend_pid())",
                        (connection, statement) -> statement.executeQuery()))
                .isInstanceOfSatisfying(SQLException.class, e -> {
                    assertThat(e.getSQLState()).isEqualTo("57P01");
                    assertThat(DatabaseFailure.of(e)).isEqualTo(DatabaseFailure.OUTAGE);
                });
        one.destroy();
    }

    @Test
    void aFailureInATransactionIsRolledBack() throws SQLException {
        SingleConnectionDataSource one = new SingleConnectionDataSource(TestPostgres.jdbcUrl(), true);
        one.setAutoCommit(false);
        try {
            assertThatThrownBy(() -> Connections.call(one, db.schema().in(WRITE), (connection, statement) -> {
                        statement.executeUpdate();
                        throw new IllegalStateException("on purpose");
                    }))
                    .isInstanceOf(IllegalStateException.class);

            one.getConnection().commit();
            assertThat(db.sql("select count(*) from {schema}._private_tasks")
                            .query(Long.class)
                            .single())
                    .isZero();
        } finally {
            one.destroy();
        }
    }

    @Test
    void nobodyGetsTheConnectionOnWhichAnErrorArose() throws SQLException {
        try (HikariDataSource pool = TestSchema.pool(1)) {
            Connection[] used = new Connection[1];
            assertThatThrownBy(() -> Connections.call(pool, db.schema().in(WRITE), (connection, statement) -> {
                        used[0] = connection.unwrap(org.postgresql.jdbc.PgConnection.class);
                        throw new OutOfMemoryError("on purpose");
                    }))
                    .isInstanceOf(OutOfMemoryError.class);

            try (Connection connection = pool.getConnection()) {
                assertThat(connection.unwrap(org.postgresql.jdbc.PgConnection.class))
                        .isNotSameAs(used[0]);
                assertThat(connection.isValid(1)).isTrue();
            }
        }
    }
}
