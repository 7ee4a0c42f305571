package dev.pgworker.dashboard;

import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Objects;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.WorkerInstances;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** All workers of an application are shown, and what runs in them. */
class InstancesTest {

    @Test
    void eachWorkerHasItsJobs() {
        String second = Application.newSchema();
        try (Application application = Application.unsecured(
                "pgworker.enabled=false",
                "pgworker.instances.reports.enabled=false",
                "pgworker.instances.reports.schema.name=" + second,
                "pgworker.dashboard.allow-actions=true")) {
            Http http = application.api().withCsrf();
            assertThat(http.json("/me").path("instances").toString()).isEqualTo("[\"default\",\"reports\"]");

            http.json("/reports/jobs", "{\"task\":\"report\"}");

            assertThat(http.json("/reports/jobs").path("jobs")).hasSize(1);
            assertThat(http.json("/default/jobs").path("jobs")).isEmpty();
            assertThat(http.json("/reports/overview").path("schema").asString()).isEqualTo(second);
            assertThat(application
                            .context()
                            .getBean(WorkerInstances.class)
                            .get("reports")
                            .jobQueries()
                            .backlog()
                            .ready())
                    .isEqualTo(1);
            application.sql("drop schema " + second + " cascade").update();
        }
    }

    /** A run knows its task and its key, but not which recurring job has added it. */
    @Test
    void workersOnOneSchemaKnowEachOthersRecurringJobs() {
        try (Application application = Application.unsecured(
                List.of(Handlers.class),
                "pgworker.dashboard.allow-actions=true",
                "pgworker.history.enabled=true",
                "pgworker.crontab=0 4 1 1 * quick ?id=one\n0 5 1 1 * quick ?id=other\n0 6 1 1 * quick ?id=keyed&jobKey=own\n",
                "pgworker.instances.reports.concurrency=1",
                "pgworker.instances.reports.crontab=0 5 1 1 * report ?id=of-reports\n")) {
            Http http = application.api().withCsrf();

            var items = http.json("/default/crontab").path("items");
            for (var item : items) {
                boolean shared =
                        List.of("one", "other").contains(item.path("identifier").asString());
                assertThat(item.path("own").asBoolean()).isTrue();
                assertThat(item.path("registered").asBoolean()).isTrue();
                assertThat(item.path("lastRunsReason").asString(""))
                        .as(item.path("identifier").asString())
                        .isEqualTo(
                                shared
                                        ? "Several recurring jobs run the task quick, and its runs do not say which. A job"
                                                + " key of its own tells them apart."
                                        : "");
                assertThat(item.path("worker").asString())
                        .isEqualTo(item.path("identifier").asString().equals("of-reports") ? "reports" : "default");
            }
            assertThat(items).hasSize(5);
            assertThat(http.json("/default/crontab/trigger", "{\"identifier\":\"of-reports\"}")
                            .path("jobId")
                            .asLong())
                    .isPositive();
            assertThat(http.json("/default/workers").path("workers"))
                    .hasSize(2)
                    .allMatch(worker -> worker.path("thisApplication").asBoolean());
        }
    }

    @Test
    void recurringJobsAreSaidInWordsAndControlled() throws InterruptedException {
        try (Application application =
                Application.unsecured(List.of(Handlers.class), "pgworker.dashboard.allow-actions=true")) {
            Http http = application.api().withCsrf();
            var item = http.json("/default/crontab").path("items").get(0);
            assertThat(item.path("words").asString()).isEqualTo("At 04:00 every day (Europe/Berlin)");
            assertThat(item.path("next")).hasSize(5);
            assertThat(item.path("own").asBoolean()).isTrue();
            assertThat(item.path("registered").asBoolean()).isTrue();

            String identifier = "{\"identifier\":\"nightly\"}";
            assertThat(http.json("/default/crontab/pause", identifier)
                            .path("text")
                            .asString())
                    .isEqualTo("nightly is paused.");
            assertThat(http.json("/default/crontab")
                            .path("items")
                            .get(0)
                            .path("pausedSince")
                            .isNull())
                    .isFalse();
            assertThat(http.json("/default/crontab/resume", identifier)
                            .path("text")
                            .asString())
                    .isEqualTo("nightly runs again.");
            assertThat(http.json("/default/crontab/trigger", identifier)
                            .path("jobId")
                            .asLong())
                    .isPositive();
            assertThat(http.post("/default/crontab/trigger", "{\"identifier\":\"nothing\"}")
                            .statusCode())
                    .isEqualTo(400);
            assertThat(http.json("/default/workers")
                            .path("workers")
                            .get(0)
                            .path("thisApplication")
                            .asBoolean())
                    .isTrue();
            assertThat(http.json("/default/tasks")
                            .path("tasks")
                            .valueStream()
                            .filter(task -> task.path("servedHere").asBoolean()))
                    .hasSize(4);
        }
    }

    /** The start of an application may be over before its crontab can be registered. */
    @Test
    void recurringJobsAreShownBeforeTheyAreRegistered() throws Exception {
        String schema = Application.newSchema();
        DriverManagerDataSource database = new DriverManagerDataSource(TestPostgres.jdbcUrl());
        new SchemaMigrator(database, new WorkerSchema(schema)).migrate();
        try (Connection stranger = database.getConnection();
                Statement statement = stranger.createStatement()) {
            stranger.setAutoCommit(false);
            // Whoever only reads is not held up.
            statement.execute("lock table " + schema + "._private_known_crontabs in exclusive mode");
            try (Application application = Application.start(
                    schema,
                    List.of(Handlers.class),
                    Application.withoutSecurity(
                            "server.address=127.0.0.1",
                            "pgworker.auto-startup=false",
                            "pgworker.instances.reports.auto-startup=false",
                            "pgworker.instances.reports.crontab=0 5 1 1 * report ?id=of-reports\n"))) {
                Http http = application.api();
                List<Worker> workers = application.context().getBean(WorkerInstances.class).all().stream()
                        .map(instance -> Objects.requireNonNull(instance.worker()))
                        .toList();
                workers.forEach(Worker::start);
                for (Worker worker : workers) {
                    Awaitility.await()
                            .until(() -> Objects.requireNonNull(worker.status())
                                    .starting()
                                    .equals(List.of("the crontab is not registered yet")));
                }

                var items = http.json("/default/crontab").path("items");
                assertThat(items.valueStream()
                                .map(item -> item.path("identifier").asString()))
                        .containsExactly("nightly", "of-reports");
                assertThat(items)
                        .allMatch(item -> !item.path("registered").asBoolean()
                                && item.path("own").asBoolean()
                                && item.path("next").size() == 5);
                assertThat(http.json("/default/overview").path("attention").toString())
                        .contains("The worker of this instance is starting: the crontab is not registered yet.");

                stranger.rollback();
                for (Worker worker : workers) {
                    assertThat(worker.awaitStarted(Duration.ofMinutes(1))).isTrue();
                }
                assertThat(http.json("/default/crontab").path("items"))
                        .hasSize(2)
                        .allMatch(item -> item.path("registered").asBoolean());
            }
        }
    }
}
