package dev.pgworker;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import tools.jackson.databind.JsonNode;

import dev.pgworker.crontab.Crontab;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.limit.Limit;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.LogCapture;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** Workers whose role, URL or pool has transactions be SERIALIZABLE. */
@Tag("thorough")
@Tag("any-postgres")
class IsolationTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);
    private static final Task<Integer> LIMITED = Task.of("limited", Integer.class);
    private static final Task<Integer> DIRECT = Task.of("direct", Integer.class);
    private static final Task<JsonNode> RECURRING = Task.of("recurring", JsonNode.class);

    /** Notes at which level each table is written to. */
    private static final String NOTE_LEVELS = """
            create table {schema}.levels (relation text, kind text, level text, primary key (relation, kind, level));
            create function {schema}.note_level() returns trigger language plpgsql as $$
            begin
              insert into {schema}.levels values (tg_table_name, tg_op, current_setting('transaction_isolation')) on conflict do nothing;
              return null;
            end $$;
            do $$
            declare
              noted text;
            begin
              for noted in
                select c.relname from pg_class c where c.relnamespace = '{schema}'::regnamespace and c.relkind = 'r' and c.relname <> 'levels'
              loop
                execute format('create trigger note_level after insert or update or delete on {schema}.%I execute function {schema}.note_level()', noted);
              end loop;
            end $$;
            """;

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final List<HikariDataSource> pools = new ArrayList<>();
    private final List<Worker> workers = new ArrayList<>();
    private final Set<Integer> done = ConcurrentHashMap.newKeySet();
    private final Set<String> levelsOfHandlers = ConcurrentHashMap.newKeySet();

    @AfterEach
    void stop() {
        workers.forEach(Worker::stop);
        pools.forEach(HikariDataSource::close);
        JdbcClient.create(db.dataSource())
                .sql("alter role current_user reset default_transaction_isolation")
                .update();
    }

    private void start(String url, String given) {
        HikariConfig config = TestSchema.poolConfig(url, 10);
        if (given.startsWith("pool")) {
            config.setTransactionIsolation("TRANSACTION_SERIALIZABLE");
        }
        config.setAutoCommit(!given.endsWith("without auto-commit"));
        HikariDataSource pool = new HikariDataSource(config);
        pools.add(pool);
        Worker worker = Worker.builder(pool)
                .schema(db.schema())
                .privateDataSource(new DriverManagerDataSource(url))
                .settings(WorkerSettings.builder()
                        .statistics(true)
                        .recovery(RecoverySettings.builder()
                                .sweepInterval(Duration.ofSeconds(1))
                                .build())
                        .build())
                .crontab(Crontab.parse("t", "* * * * * recurring ?fill=5m {}"))
                .schedules(List.of(
                        Schedule.builder("often", Recurrence.fixedDelay(Duration.ofSeconds(1)), "recurring", null)
                                .build()))
                .limits(List.of(Limit.concurrency("limit", 5, LIMITED.identifier())))
                .tasks(List.of(
                        TaskRegistration.of(WORK, (number, context) -> {
                            done.add(number);
                            if (number % 100 == 1) {
                                levelsOfHandlers.add(JdbcClient.create(pool)
                                        .sql("show transaction_isolation")
                                        .query(String.class)
                                        .single());
                            }
                        }),
                        TaskRegistration.of(LIMITED, (number, context) -> done.add(number)),
                        TaskRegistration.of(RECURRING, (payload, context) -> {}),
                        TaskRegistration.of(DIRECT, (number, context) -> done.add(number))
                                .with(TaskOptions.DEFAULT.withDirect(true))))
                .build();
        workers.add(worker);
        worker.start();
    }

    @ParameterizedTest
    @ValueSource(strings = {"role", "url", "pool", "pool without auto-commit"})
    void whatWorkersDoIsReadCommitted(String given) {
        JdbcClient client = JdbcClient.create(db.dataSource());
        client.sql(db.schema().in(NOTE_LEVELS)).update();
        if (given.equals("role")) {
            client.sql("alter role current_user set default_transaction_isolation = serializable")
                    .update();
        }
        String url = TestPostgres.jdbcUrl()
                + (given.equals("url") ? "&options=-c%20default_transaction_isolation=serializable" : "");

        try (LogCapture log = new LogCapture("dev.pgworker")) {
            for (int i = 0; i < 3; i++) {
                start(url, given);
            }
            for (int begin = 0; begin < 6_000; begin += 500) {
                db.scheduler()
                        .addJobs(IntStream.range(begin, begin + 500)
                                .mapToObj(number -> JobRequest.of(
                                        number % 10 == 0 ? LIMITED : number % 10 == 2 ? DIRECT : WORK,
                                        number,
                                        number % 2 == 0
                                                ? JobSpec.DEFAULT
                                                : JobSpec.builder()
                                                        .queueName("q" + number % 50)
                                                        .build()))
                                .toList());
            }
            Awaitility.await().until(() -> done.size() == 6_000);
            workers.forEach(Worker::stop);

            assertThat(log.warnings()).isEmpty();
        }
        // Jobs are added by this test, too.
        assertThat(client.sql(db.schema()
                                .in("select relation, kind from {schema}.levels where level <> 'read committed'"
                                        + " and (relation, kind) not in (('_private_jobs', 'INSERT'), ('_private_tasks', 'INSERT'),"
                                        + " ('_private_job_queues', 'INSERT'))"))
                        .query()
                        .listOfRows())
                .isEmpty();
        assertThat(client.sql(db.schema().in("select distinct relation from {schema}.levels"))
                        .query(String.class)
                        .list())
                .contains(
                        "_private_jobs",
                        "_private_workers",
                        "pgworker_schedules",
                        "_private_known_crontabs",
                        "pgworker_limits");
        assertThat(levelsOfHandlers).containsExactly("serializable");
    }
}
