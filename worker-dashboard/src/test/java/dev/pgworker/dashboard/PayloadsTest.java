package dev.pgworker.dashboard;

import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;

import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;

import dev.pgworker.guide.DocumentedDashboard;
import dev.pgworker.job.JobSpec;

import static org.assertj.core.api.Assertions.assertThat;

/** Payloads are hidden unless a property or a rule shows them. */
class PayloadsTest {

    @Test
    void byDefaultTheyAreHidden() {
        try (Application application = Application.unsecured("pgworker.enabled=false")) {
            long id = application
                    .jobs()
                    .addJob(
                            "a",
                            Map.of("secret", "squirrel"),
                            JobSpec.builder().jobKey("key").build())
                    .id();
            Http http = application.api();

            for (String path : List.of("/default/jobs", "/default/jobs/" + id, "/default/jobs?search=key")) {
                var answer = http.get(path);
                assertThat(answer.statusCode()).isEqualTo(200);
                assertThat(answer.body()).contains("\"payloadHidden\":").doesNotContain("squirrel");
            }
            JsonNode found = http.json("/default/jobs?search=squirrel");
            assertThat(found.path("jobs")).isEmpty();
            assertThat(found.path("searchedPayloads").asBoolean()).isFalse();
            assertThat(http.json("/default/jobs/" + id)
                            .path("job")
                            .path("payloadHidden")
                            .asBoolean())
                    .isTrue();
            assertThat(http.get("/default/history?search=squirrel").statusCode())
                    .isEqualTo(400);
            assertThat(http.json("/me").path("payloads").asString()).isEqualTo("hidden");
        }
    }

    @Test
    void aRuleDecidesAboutEach() {
        try (Application application =
                Application.unsecured(List.of(DocumentedDashboard.Payloads.class), "pgworker.enabled=false")) {
            long greeting = application
                    .jobs()
                    .addJob("send-greeting", Map.of("name", "Kim"))
                    .id();
            long card = application
                    .jobs()
                    .addJob("charge-card", Map.of("number", "4111111111111111"))
                    .id();
            long other = application
                    .jobs()
                    .addJob("other", Map.of("secret", "squirrel"))
                    .id();
            long large = application
                    .jobs()
                    .addJob("send-greeting", "x".repeat(600_000))
                    .id();
            Http http = application.api();

            assertThat(payload(http, greeting)).isEqualTo("{\"name\":\"Kim\"}");
            assertThat(payload(http, card)).isEqualTo("{\"number\":\"****\"}");
            assertThat(payload(http, other)).isEmpty();
            assertThat(payload(http, large)).isEmpty();
            assertThat(http.get("/default/jobs").body())
                    .contains("Kim", "****")
                    .doesNotContain("squirrel", "4111", "xxx");
            assertThat(http.json("/default/jobs?search=squirrel").path("jobs")).isEmpty();
            assertThat(http.json("/me").path("payloads").asString()).isEqualTo("some");
        }
    }

    /** What a rule shows of a payload must not take its place. */
    @Test
    void aFailedJobIsRetriedWithAnotherPayloadWhereAllOfItIsShown() {
        try (Application application = Application.unsecured(
                List.of(DocumentedDashboard.Payloads.class),
                "pgworker.enabled=false",
                "pgworker.dashboard.allow-actions=true")) {
            long greeting = failed(application, "send-greeting", Map.of("name", "Kim"));
            long card = failed(application, "charge-card", Map.of("number", "4111111111111111"));
            long other = failed(application, "other", Map.of("secret", "squirrel"));
            Http http = application.api().withCsrf();

            for (long hidden : List.of(card, other)) {
                JsonNode job = http.json("/default/jobs/" + hidden).path("job");
                assertThat(job.path("payloadWhole").asBoolean()).isFalse();
                assertThat(http.post("/default/jobs/retry", retry(job, "{}")).statusCode())
                        .isEqualTo(403);
            }
            JsonNode job = http.json("/default/jobs/" + greeting).path("job");
            assertThat(job.path("payloadWhole").asBoolean()).isTrue();
            assertThat(http.post("/default/jobs/retry", retry(job, "{\\\"name\\\":"))
                            .statusCode())
                    .isEqualTo(400);
            for (String missing : List.of("payload", "updatedAt")) {
                HttpResponse<String> refused = http.post(
                        "/default/jobs/retry",
                        retry(job, "{}").replaceFirst("\"" + missing + "\":\"[^\"]*\"", "\"" + missing + "\":\"\""));
                assertThat(Http.error(refused)).isEqualTo(missing + " is required.");
            }
            JsonNode answer = http.json("/default/jobs/retry", retry(job, "{\\\"name\\\":\\\"Ada\\\"}"));
            assertThat(answer.path("changed").toString()).isEqualTo("[" + greeting + "]");
            assertThat(payload(http, greeting)).isEqualTo("{\"name\":\"Ada\"}");
            assertThat(http.json("/default/jobs/" + greeting)
                            .path("job")
                            .path("state")
                            .asString())
                    .isEqualTo("ready");
            assertThat(http.post("/default/jobs/retry", retry(job, "{}")).statusCode())
                    .as("changed meanwhile")
                    .isEqualTo(409);
        }
    }

    private static long failed(Application application, String task, Object payload) {
        long id = application.jobs().addJob(task, payload).id();
        assertThat(application.changes().permanentlyFail(List.of(id), "broken")).hasSize(1);
        return id;
    }

    private static String retry(JsonNode job, String payload) {
        return "{\"id\":" + job.path("id") + ",\"updatedAt\":" + job.path("updatedAt") + ",\"payload\":\"" + payload
                + "\"}";
    }

    private static String payload(Http http, long id) {
        return http.json("/default/jobs/" + id).path("job").path("payload").asString("");
    }

    @Test
    void aRuleThatFailsHides() {
        PayloadRule rule = new PayloadRule(
                (task, json, user) -> {
                    throw new IllegalStateException(json);
                },
                true);

        assertThat(rule.shown("a", "{}", true, null)).isNull();
    }
}
