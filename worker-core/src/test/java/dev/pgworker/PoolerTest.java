package dev.pgworker;

import java.io.IOException;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import javax.sql.DataSource;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.postgresql.ds.PGSimpleDataSource;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.crontab.Crontab;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.JobChange;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.job.Task;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.limit.Limit;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.schema.SchemaException;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.OwnDatabase;
import dev.pgworker.testsupport.ForeignApplication;
import dev.pgworker.testsupport.PgBouncer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/** A worker behind PgBouncer, which gives the same sessions of the server to another application. */
@Tag("thorough")
@Tag("any-postgres")
class PoolerTest {

    private static final int SESSIONS = 6;
    private static final WorkerSchema SCHEMA = new WorkerSchema("pooled");
    private static final Task<Integer> WORK = Task.of("work", Integer.class);
    private static final Task<Integer> LIMITED = Task.of("limited", Integer.class);
    private static final Task<Object> TICK = Task.of("tick", Object.class);
    private static final Task<Integer> DIRECT = Task.of("direct", Integer.class);

    private final OwnDatabase database = new OwnDatabase();
    private final List<AutoCloseable> closed = new ArrayList<>();

    @BeforeEach
    void create() {
        database.create();
    }

    @AfterEach
    void end() throws Exception {
        for (int i = closed.size() - 1; i >= 0; i--) {
            closed.get(i).close();
        }
        database.drop();
    }

    private String bouncer(String mode, int sessions) throws IOException {
        int server = Integer.parseInt(database.url().replaceFirst(".*?:(\\d+)/.*", "$1"));
        PgBouncer bouncer = PgBouncer.start(server, "pooler-" + mode, mode, sessions);
        Assumptions.assumeTrue(bouncer != null, "PgBouncer is not installed");
        closed.add(bouncer);
        return bouncer.behind(database.url());
    }

    private HikariDataSource pool(String url, int size) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(url);
        config.setMaximumPoolSize(size);
        HikariDataSource pool = new HikariDataSource(config);
        closed.add(pool);
        return pool;
    }

    private static PGSimpleDataSource plain(String url) {
        PGSimpleDataSource plain = new PGSimpleDataSource();
        plain.setUrl(url);
        return plain;
    }

    private ForeignApplication foreign(String pooled, int clients) throws SQLException {
        ForeignApplication foreign = ForeignApplication.start(database.url(), pooled, clients);
        closed.add(foreign);
        return foreign;
    }

    @ParameterizedTest
    @CsvSource({"transaction, true", "transaction, false", "session, true", "session, false"})
    void startsMigratesRunsAndStops(String mode, boolean everything) throws Exception {
        String pooled = bouncer(mode, mode.equals("session") ? 40 : SESSIONS);
        ForeignApplication foreign = foreign(pooled, 3);
        HikariDataSource pool = pool(ForeignApplication.unprepared(pooled), 6);
        DataSource direct = everything ? null : plain(database.url());
        new SchemaMigrator(direct == null ? pool : direct, SCHEMA).migrate();
        JobScheduler scheduler = WorkerClient.jobScheduler(pool, SCHEMA, new PayloadCodec(new JsonMapper()));
        Worker worker = worker(pool, plain(ForeignApplication.unprepared(pooled)), direct);
        worker.start();
        boolean listens = !everything || mode.equals("session");

        for (int i = 0; i < 100; i++) {
            scheduler.addJob(
                    WORK,
                    i,
                    JobSpec.builder().queueName(i % 3 == 0 ? "q" : null).build());
            scheduler.addJob(LIMITED, i);
            scheduler.addJob(DIRECT, i);
        }
        manage(pool);
        Awaitility.await().until(() -> worker.status().listening() == listens && jobs() == 0);
        if (!listens) {
            assertThat(worker.status().failing())
                    .singleElement()
                    .satisfies(loop -> assertThat(loop.name()).isEqualTo("listener"))
                    .satisfies(loop -> assertThat(loop.reason()).contains("pgworker.listen.url"));
        }
        worker.stop();
        new SchemaMigrator(pool, SCHEMA).migrate();

        if (mode.equals("transaction")) {
            foreign.lookAtSessions(SESSIONS);
        }
        assertThat(foreign.seen()).isEmpty();
        assertThat(registered()).isZero();
    }

    private Worker worker(DataSource pool, DataSource own, @Nullable DataSource listen) {
        Worker worker = Worker.builder(pool)
                .schema(SCHEMA)
                .privateDataSource(own)
                .listenDataSource(listen)
                .settings(WorkerSettings.builder()
                        .concurrency(3)
                        .pollInterval(Duration.ofMillis(200))
                        .recovery(RecoverySettings.builder()
                                .heartbeatInterval(Duration.ofSeconds(1))
                                .build())
                        .build())
                .crontab(Crontab.parse("test", "* * * * * tick"))
                .limits(List.of(Limit.concurrency("few", 2, LIMITED.identifier())))
                .tasks(List.of(
                        TaskRegistration.of(WORK, (n, context) -> {}),
                        TaskRegistration.of(LIMITED, (n, context) -> {}),
                        TaskRegistration.of(TICK, (nothing, context) -> {}),
                        TaskRegistration.of(DIRECT, (n, context) -> {}).with(TaskOptions.DEFAULT.withDirect(true))))
                .build();
        closed.add(worker::stop);
        return worker;
    }

    /** What the dashboard and the command line call. */
    private static void manage(DataSource pool) {
        JobQueries queries = WorkerClient.jobQueries(pool, SCHEMA);
        WorkerOperations operations = WorkerClient.workerOperations(pool, SCHEMA);
        operations.pause(PauseTarget.task("work"), "a test");
        operations.resume(PauseTarget.task("work"));
        operations.cleanup(EnumSet.allOf(CleanupTask.class));
        WorkerClient.jobChanges(pool, SCHEMA)
                .change(queries.select(JobQuery.ALL, 10), new JobChange.RunNow(), (done, changed, total) -> true);
        queries.list(JobQuery.ALL);
        queries.backlog();
        queries.statistics();
    }

    private int jobs() {
        return count("select count(*) from pooled._private_jobs where key is null and attempts < max_attempts");
    }

    private int registered() {
        return count("select count(*) from pooled._private_workers");
    }

    private int count(String sql) {
        try (Connection connection = plain(database.url()).getConnection();
                Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(sql)) {
            row.next();
            return row.getInt(1);
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void aPoolerWithoutTransactionsIsRefused() throws Exception {
        String pooled = bouncer("statement", SESSIONS);
        ForeignApplication foreign = foreign(pooled, 2);
        HikariDataSource pool = pool(ForeignApplication.unprepared(pooled), 2);

        assertThatExceptionOfType(SchemaException.class)
                .isThrownBy(() -> new SchemaMigrator(pool, SCHEMA).migrate())
                .withMessageContaining("allows no transactions")
                .withMessageContaining("pool_mode=transaction");
        new SchemaMigrator(plain(database.url()), SCHEMA).migrate();
        assertThatExceptionOfType(SchemaException.class)
                .isThrownBy(() -> new SchemaMigrator(pool, SCHEMA).checkConnections());
        assertThat(foreign.seen()).isEmpty();
    }

    @Test
    void preparedStatementsThatReachSharedSessionsAreRefused() throws Exception {
        String pooled = bouncer("transaction", SESSIONS);
        ForeignApplication foreign = foreign(pooled, 1);
        HikariDataSource pool = pool(pooled, 2);

        assertThatExceptionOfType(SchemaException.class)
                .isThrownBy(() -> new SchemaMigrator(pool, SCHEMA).migrate())
                .withMessageContaining("prepareThreshold=0");
        assertThat(count("select count(*) from pg_namespace where nspname = 'pooled'"))
                .isZero();

        foreign.lookAtSessions(SESSIONS);
        assertThat(foreign.seen()).isEmpty();
        new SchemaMigrator(pool(bouncer("session", SESSIONS), 1), SCHEMA).migrate();
    }
}
