package dev.pgworker;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;
import org.springframework.jdbc.core.simple.JdbcClient;
import tools.jackson.databind.JsonNode;

import dev.pgworker.history.HistorySettings;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.limit.Limit;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.testing.OwnDatabase;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Settings of a role or a database that change how the server reads statements and values. */
@Tag("thorough")
class ServerSettingsTest {

    private static final Task<JsonNode> WORK = Task.of("work", JsonNode.class);

    private final Set<String> done = ConcurrentHashMap.newKeySet();

    @Test
    void thoseThatChangeHowStatementsAreReadChangeNothing() {
        works(Map.ofEntries(
                Map.entry("array_nulls", "off"),
                Map.entry("standard_conforming_strings", "off"),
                Map.entry("backslash_quote", "off"),
                Map.entry("quote_all_identifiers", "on"),
                Map.entry("transform_null_equals", "on"),
                Map.entry("xmloption", "document"),
                Map.entry("bytea_output", "escape"),
                Map.entry("\"DateStyle\"", "'SQL, DMY'"),
                Map.entry("\"IntervalStyle\"", "sql_standard"),
                Map.entry("\"TimeZone\"", "'Asia/Kolkata'"),
                Map.entry("extra_float_digits", "-15"),
                Map.entry("check_function_bodies", "off"),
                Map.entry("row_security", "off"),
                Map.entry("plpgsql.variable_conflict", "use_column"),
                Map.entry("plpgsql.extra_errors", "'all'"),
                Map.entry("plpgsql.extra_warnings", "'all'"),
                Map.entry("search_path", "''")));
    }

    private void works(Map<String, String> settings) {
        OwnDatabase database = new OwnDatabase();
        database.create();
        String name = database.url().replaceFirst(".*/([^/?]+)(\\?.*|$)", "$1");
        settings.forEach(
                (setting, value) -> database.onServer("alter database " + name + " set " + setting + " = " + value)
                        .update());
        Logger root = (Logger) LoggerFactory.getLogger(org.slf4j.Logger.ROOT_LOGGER_NAME);
        ListAppender<ILoggingEvent> log = new ListAppender<>();
        log.start();
        root.addAppender(log);
        try (HikariDataSource pool = new HikariDataSource(TestSchema.poolConfig(database.url(), 10))) {
            work(pool);
            assertThat(List.copyOf(log.list))
                    .filteredOn(event -> event.getLevel().isGreaterOrEqual(Level.WARN)
                            && !event.getFormattedMessage().contains("failed and will be retried")
                            && !event.getFormattedMessage().contains("[dead]"))
                    .isEmpty();
        } finally {
            root.detachAppender(log);
            database.drop();
        }
    }

    private void work(HikariDataSource pool) {
        WorkerSchema schema = new WorkerSchema("jobs");
        JdbcClient sql = JdbcClient.create(pool);
        new SchemaMigrator(pool, schema).migrate();
        new SchemaMigrator(pool, schema).validate();
        sql.sql(
                        "insert into jobs._private_workers values ('dead', '2020-01-01', '2020-01-01', '{\"heartbeatIntervalMillis\": 1000}')")
                .update();
        for (String task : List.of("work", "limited")) {
            sql.sql("select jobs.add_job(?, '{\"name\": \"recovered " + task + "\"}')")
                    .param(task)
                    .query()
                    .listOfRows();
        }
        sql.sql("update jobs._private_jobs set locked_by = 'dead', locked_at = now() - interval '1 hour', attempts = 1")
                .update();
        Worker worker = Worker.builder(pool)
                .schema(schema)
                .settings(WorkerSettings.builder()
                        .history(HistorySettings.builder().enabled(true).build())
                        .recovery(RecoverySettings.builder()
                                .sweepInterval(Duration.ofSeconds(1))
                                .recoveryDelay(Duration.ZERO)
                                .build())
                        .build())
                .task(WORK, this::handle)
                .task(Task.of("limited", JsonNode.class), (payload, context) -> done.add("limited " + payload))
                .limits(List.of(
                        Limit.concurrency("per", 2, "limited").per(List.of("a", "b")),
                        Limit.rate("all", 1000, Duration.ofSeconds(1), "limited")))
                .schedules(List.of(
                        Schedule.builder(
                                        "plain",
                                        Recurrence.fixedRate(Duration.ofSeconds(1), Instant.EPOCH),
                                        "work",
                                        Map.of("name", "scheduled"))
                                .build(),
                        Schedule.builder(
                                        "keyed",
                                        Recurrence.fixedRate(Duration.ofSeconds(1), Instant.EPOCH),
                                        "work",
                                        Map.of("name", "keyed"))
                                .spec(JobSpec.builder().jobKey("of a schedule").build())
                                .build()))
                .build();
        worker.start();
        try {
            var scheduler = WorkerClient.jobScheduler(
                    pool, schema, new PayloadCodec(new tools.jackson.databind.json.JsonMapper()));
            scheduler.addJobs(List.of(
                    JobRequest.of("work", Map.of("name", "a\\'\"NULL")),
                    JobRequest.of(
                            "work",
                            Map.of("name", "b"),
                            JobSpec.builder()
                                    .queueName("q\\")
                                    .runAt(Instant.now())
                                    .flags(List.of("NULL", "x\\y"))
                                    .build()),
                    JobRequest.of(
                            "work",
                            Map.of("name", "c"),
                            JobSpec.builder().jobKey("k").maxAttempts(3).build()),
                    JobRequest.of(
                            "work",
                            Map.of("name", "d"),
                            JobSpec.builder().priority(3).build()),
                    JobRequest.of("work", Map.of("name", "fails"))));
            for (String payload : List.of(
                    "{}", "{\"a\": {\"b\": null}}", "{\"a\": {\"b\": \"NULL\"}}", "{\"a\": {\"b\": \"x y|\\\\\"}}")) {
                sql.sql("select jobs.add_job('limited', ?::json)")
                        .param(payload)
                        .query()
                        .listOfRows();
            }
            sql.sql("""
                            select jobs.add_jobs(array[('work', '{"name": "e"}', null, null, null, null, null, null),
                              ('work', '{"name": "f"}', 'q', now(), 3, 'kk', 1, array['NULL'])]::jobs.job_spec[])""").query().listOfRows();
            Awaitility.await()
                    .until(() -> done.containsAll(Set.of(
                            "a\\'\"NULL",
                            "b",
                            "c",
                            "d",
                            "e",
                            "f",
                            "fails",
                            "scheduled",
                            "keyed",
                            "recovered work",
                            "limited {}",
                            "limited {\"a\":{\"b\":null}}",
                            "limited {\"a\":{\"b\":\"NULL\"}}",
                            "limited {\"a\":{\"b\":\"x y|\\\\\"}}",
                            "limited {\"name\":\"recovered limited\"}")));
        } finally {
            worker.stop();
        }
        assertThat(sql.sql(
                                "select distinct payload ->> 'name' from jobs.pgworker_history where outcome = 'succeeded' and result is null")
                        .query(String.class)
                        .list())
                .containsOnly(null, "d", "recovered limited");
        assertThat(sql.sql("select distinct flags::text from jobs.pgworker_history where flags is not null")
                        .query(String.class)
                        .list())
                .containsExactlyInAnyOrder("{\"NULL\": true}", "{\"x\\\\y\": true, \"NULL\": true}");
    }

    private void handle(JsonNode payload, JobContext context) {
        String name = payload.get("name").asString();
        if (name.equals("fails") && context.attempt() == 1) {
            throw new IllegalStateException("on purpose");
        }
        context.result(name.equals("d") ? null : name);
        done.add(name);
    }
}
