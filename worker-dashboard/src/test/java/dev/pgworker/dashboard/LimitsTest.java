package dev.pgworker.dashboard;

import java.time.Duration;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;

import dev.pgworker.autoconfigure.WorkerInstances;
import dev.pgworker.limit.JobLimits;
import dev.pgworker.limit.Limit;

import static org.assertj.core.api.Assertions.assertThat;

/** What the pages read of limits. */
class LimitsTest {

    private static Application application;
    private static Http http;

    @BeforeAll
    static void start() {
        application = Application.unsecured("worker.enabled=false");
        http = application.api();
    }

    @AfterAll
    static void stop() {
        application.close();
    }

    @Test
    void theyAreListedWithWhatTheyAllowAndHowMuchIsUsed() {
        JobLimits limits = application
                .context()
                .getBean(WorkerInstances.class)
                .get(WorkerInstances.DEFAULT)
                .jobLimits();
        limits.put(Limit.concurrency("mail", 3, "mail", "fax").per("tenant"));
        limits.put(Limit.rate("partner", 600, Duration.ofMinutes(1), "call").withBurst(20));

        JsonNode all = http.json("/default/limits").path("limits");
        assertThat(all).hasSize(2);
        assertThat(all.get(0).path("per").asString()).isEqualTo("tenant");
        assertThat(all.get(0).path("phase").asString()).isEqualTo("applying");
        assertThat(all.get(0).path("used").asInt()).isZero();
        JsonNode one = http.json("/default/limits/one?name=partner");
        assertThat(one.path("maxStarts").asInt()).isEqualTo(600);
        assertThat(one.path("periodMs").asInt()).isEqualTo(60_000);
        assertThat(one.path("values")).isEmpty();
        assertThat(http.get("/default/limits/one?name=none").statusCode()).isEqualTo(404);
        assertThat(http.json("/default/jobs?state=limited").path("jobs")).isEmpty();
        assertThat(http.json("/default/jobs/count").path("limited").asInt(-1)).isZero();
    }
}
