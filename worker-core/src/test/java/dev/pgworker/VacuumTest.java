package dev.pgworker;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.slf4j.LoggerFactory;
import org.springframework.jdbc.datasource.DelegatingDataSource;

import dev.pgworker.internal.store.JobTableStore;
import dev.pgworker.internal.watch.Vacuum;
import dev.pgworker.job.Task;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

@Tag("thorough")
class VacuumTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema(10).installedAnew();

    @BeforeEach
    void noAutovacuum() {
        db.sql("alter table {schema}._private_jobs set (autovacuum_enabled = off)")
                .update();
    }

    @Test
    void aWorkerThatFinishesManyJobsVacuumsTheirTable() {
        db.start(db.worker().task(WORK, (n, context) -> {}));
        add(25_000, 1, "now()");

        Awaitility.await().pollInterval(Duration.ofMillis(200)).until(() -> vacuums() > 0);
    }

    @Test
    void vacuumsWhatItIsToldAndLeavesTheConnectionAsItWas() throws Exception {
        JobTableStore table = new JobTableStore(db.dataSource(), db.schema());
        assertThat(table.mayVacuum()).isTrue();
        assertThat(table.sinceVacuum()).isNull();

        try (Connection connection = db.dataSource().getConnection()) {
            connection.setAutoCommit(false);
            JobTableStore inTransactions = new JobTableStore(new SingleConnection(connection), db.schema());
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
                assertThat(new JobTableStore(new SingleConnection(connection), db.schema()).mayVacuum())
                        .isFalse();
            } finally {
                statement.execute("reset role");
                statement.execute("drop owned by " + role);
                statement.execute("drop role " + role);
            }
        }
    }

    @Test
    void aWorkerWhoseRoleMayNotVacuumSaysSoOnceAndRunsEarlierJobsAllTheSame() throws Exception {
        String role = GuideRoles.create(db.dataSource(), db.schema(), "worker");
        HikariConfig config = TestSchema.poolConfig(TestPostgres.jdbcUrl(), 10);
        config.setConnectionInitSql("set role " + role);
        ListAppender<ILoggingEvent> log = new ListAppender<>();
        log.start();
        Logger logger = (Logger) LoggerFactory.getLogger(Vacuum.class);
        logger.addAppender(log);
        try (HikariDataSource asRole = new HikariDataSource(config)) {
            AtomicInteger late = new AtomicInteger();
            Worker worker = Worker.builder(asRole)
                    .schema(db.schema())
                    .settings(WorkerSettings.builder().concurrency(2).build())
                    .task(WORK, (n, context) -> {
                        if (n == 2) {
                            late.incrementAndGet();
                        }
                    })
                    .build();
            worker.start();
            try {
                add(25_000, 1, "now()");
                Awaitility.await().until(() -> !log.list.isEmpty());
                add(40_000, 1, "now()");
                add(100, 2, "now() - interval '1 hour'");
                Awaitility.await().until(() -> db.jobs() == 0);
            } finally {
                worker.stop();
            }
            assertThat(late).hasValue(100);
            assertThat(log.list).hasSize(1);
            assertThat(log.list.get(0).getFormattedMessage()).contains("may not VACUUM");
            assertThat(vacuums()).isZero();
        } finally {
            logger.detachAppender(log);
            db.sql("drop owned by " + role).update();
            db.sql("drop role " + role).update();
        }
    }

    /** Slowed down so much that it never ends. */
    private static HikariConfig slowly() {
        HikariConfig config = TestSchema.poolConfig(TestPostgres.jdbcUrl(), 10);
        config.setConnectionInitSql(
                "set vacuum_cost_delay = 100; set vacuum_cost_limit = 1; set statement_timeout = '2s'");
        return config;
    }

    @Test
    void aWorkerWhoseVacuumsAreCancelledSaysSoOnce() {
        ListAppender<ILoggingEvent> log = new ListAppender<>();
        log.start();
        Logger logger = (Logger) LoggerFactory.getLogger(Vacuum.class);
        logger.addAppender(log);
        try (HikariDataSource slow = new HikariDataSource(slowly())) {
            Worker worker = Worker.builder(slow)
                    .schema(db.schema())
                    .task(WORK, (n, context) -> {})
                    .build();
            worker.start();
            try {
                add(25_000, 1, "now()");
                Awaitility.await().until(() -> !log.list.isEmpty());
            } finally {
                worker.stop();
            }
            assertThat(log.list.get(0).getFormattedMessage())
                    .containsPattern("was cancelled after \\d+ s")
                    .contains("statement_timeout");
        } finally {
            logger.detachAppender(log);
        }
    }

    @Test
    void aVacuumEndsWhenItIsCancelledOrItsTimeIsOver() throws Exception {
        add(25_000, 1, "now()");
        db.sql("delete from {schema}._private_jobs").update();
        HikariConfig config = slowly();
        config.setConnectionInitSql("set vacuum_cost_delay = 100; set vacuum_cost_limit = 1");
        try (HikariDataSource slow = new HikariDataSource(config)) {
            assertThatThrownBy(new JobTableStore(slow, db.schema(), Duration.ofSeconds(1))::vacuum)
                    .satisfies(e -> assertThat(((SQLException) e).getSQLState()).isEqualTo("57014"));

            JobTableStore table = new JobTableStore(slow, db.schema());
            CompletableFuture<Object> ended = CompletableFuture.supplyAsync(
                    () -> {
                        try {
                            table.vacuum();
                            return "vacuumed";
                        } catch (SQLException e) {
                            return String.valueOf(e.getSQLState());
                        }
                    },
                    OwnThread.EACH);
            Awaitility.await()
                    .until(() -> db.sql(
                                            "select count(*) from pg_stat_activity where query like 'vacuum%' || ? || '%' and state = 'active'")
                                    .param(db.schema().name())
                                    .query(Long.class)
                                    .single()
                            == 1);
            assertThat(table.cancelVacuum()).isTrue();
            assertThat(ended.join()).isEqualTo("57014");

            table.vacuum(); // none begins any more
            assertThat(vacuums()).isZero();
        }
    }

    private void add(int amount, int payload, String runAt) {
        db.sql("select count(*) from {schema}.add_jobs(array(select ('work', '" + payload + "', null, " + runAt
                        + ", null, null, null, null)::{schema}.job_spec from generate_series(1, " + amount + ")))")
                .query(Long.class)
                .single();
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
