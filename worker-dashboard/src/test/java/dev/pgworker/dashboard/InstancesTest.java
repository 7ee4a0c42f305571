package dev.pgworker.dashboard;

import java.util.List;

import org.junit.jupiter.api.Test;

import dev.pgworker.autoconfigure.WorkerInstances;

import static org.assertj.core.api.Assertions.assertThat;

/** All workers of an application are shown, and what runs in them. */
class InstancesTest {

    @Test
    void eachWorkerHasItsJobs() {
        String second = Application.newSchema();
        try (Application application = Application.unsecured(
                "worker.enabled=false",
                "worker.instances.reports.enabled=false",
                "worker.instances.reports.schema.name=" + second,
                "worker.dashboard.allow-actions=true")) {
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
                            .jobAdmin()
                            .backlog()
                            .ready())
                    .isEqualTo(1);
            application.sql("drop schema " + second + " cascade").update();
        }
    }

    @Test
    void recurringJobsAreSaidInWordsAndControlled() throws InterruptedException {
        try (Application application =
                Application.unsecured(List.of(Handlers.class), "worker.dashboard.allow-actions=true")) {
            Http http = application.api().withCsrf();
            var item = http.json("/default/crontab").path("items").get(0);
            assertThat(item.path("words").asString()).isEqualTo("At 04:00 every day (Europe/Berlin)");
            assertThat(item.path("next")).hasSize(5);
            assertThat(item.path("own").asBoolean()).isTrue();

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
}
