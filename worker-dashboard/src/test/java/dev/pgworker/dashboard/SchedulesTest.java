package dev.pgworker.dashboard;

import java.net.URLEncoder;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.List;
import java.util.Map;

import jakarta.servlet.http.HttpServletRequest;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import tools.jackson.databind.JsonNode;

import dev.pgworker.autoconfigure.WorkerInstances;
import dev.pgworker.guide.DocumentedDashboard;
import dev.pgworker.job.JobSpec;
import dev.pgworker.schedule.Misfire;
import dev.pgworker.schedule.Overlap;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.RecurringQuery;
import dev.pgworker.schedule.Schedule;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

/** What the pages read and change of schedules that nobody executes. */
class SchedulesTest {

    private static Application application;
    private static Application careful;
    private static Http http;

    @BeforeAll
    static void start() {
        application = Application.unsecured(
                "pgworker.enabled=false", "pgworker.dashboard.allow-actions=true", "pgworker.dashboard.payloads=shown");
        http = application.api().withCsrf();
        careful = Application.unsecured(
                List.of(DocumentedDashboard.Payloads.class, OneAction.class),
                "pgworker.enabled=false",
                "pgworker.dashboard.allow-actions=true");
    }

    /** Lets a visitor do what a header names, and nothing else. */
    @Configuration(proxyBeanMethods = false)
    static class OneAction {

        @Bean
        DashboardAccess access() {
            return new DashboardAccess() {
                @Override
                public boolean mayRead(HttpServletRequest request) {
                    return true;
                }

                @Override
                public boolean may(DashboardAction action, HttpServletRequest request) {
                    return action.name().equals(request.getHeader("X-May"));
                }
            };
        }
    }

    @AfterAll
    static void stop() {
        application.close();
        careful.close();
    }

    @AfterEach
    void removeAll() {
        application.sql("delete from {schema}.pgworker_schedules").update();
        application.sql("delete from {schema}._private_jobs").update();
        careful.sql("delete from {schema}.pgworker_schedules").update();
    }

    private static RecurringJobs schedules(Application of) {
        return of.context()
                .getBean(WorkerInstances.class)
                .get(WorkerInstances.DEFAULT)
                .recurringJobs();
    }

    private static Schedule.Builder yearly(String name) {
        return Schedule.builder(
                name, Recurrence.cron("0 0 4 1 JAN *", ZoneId.of("Europe/Berlin")), "mail", Map.of("to", "ada"));
    }

    private static String encode(String text) {
        return URLEncoder.encode(text, UTF_8);
    }

    private static JsonNode one(String name) {
        return http.json("/default/schedules/one?name=" + encode(name)).path("schedule");
    }

    /** Wraps the name, which may be anything, in a body with what else is given. */
    private static String body(String name, String... more) {
        return "{\"name\":" + Http.json.writeValueAsString(name)
                + (more.length == 0 ? "" : "," + String.join(",", more)) + "}";
    }

    @Test
    void theyAreListedPageByPage() {
        for (int i = 10; i < 17; i++) {
            schedules(application).put(yearly("tenant-" + i).build());
        }
        schedules(application).put(yearly("other").build());
        schedules(application).pause("other");

        JsonNode first = http.json("/default/schedules?prefix=tenant-&limit=5");
        assertThat(first.path("schedules")).hasSize(5);
        JsonNode rest = http.json("/default/schedules?prefix=tenant-&limit=5&after="
                + first.path("next").asString());
        assertThat(rest.path("schedules")).hasSize(2);
        assertThat(rest.path("next").isNull()).isTrue();
        assertThat(http.json("/default/schedules?limit=8").path("next").isNull())
                .as("exactly a page")
                .isTrue();
        assertThat(http.json("/default/schedules?paused=true")
                        .path("schedules")
                        .valueStream()
                        .map(schedule -> schedule.path("state").asString()))
                .containsExactly("paused");
        assertThat(http.json("/default/schedules?paused=false&task=mail").path("schedules"))
                .hasSize(7);
        JsonNode listed = first.path("schedules").get(0);
        assertThat(listed.path("words").asString())
                .isEqualTo("At 04:00 on day 1 of the month in January (Europe/Berlin)");
        assertThat(listed.path("state").asString()).isEqualTo("active");
        assertThat(listed.has("payload")).isFalse();
    }

    @Test
    void oneTellsEverything() {
        schedules(application)
                .put(yearly("all")
                        .overlap(Overlap.SKIP)
                        .misfire(Misfire.RUN_ALL)
                        .backfill(Duration.ofDays(7))
                        .jitter(Duration.ofMinutes(5))
                        .startsAt(Instant.parse("2030-01-01T00:00:00Z"))
                        .endsAt(Instant.parse("2035-01-01T00:00:00Z"))
                        .spec(JobSpec.builder()
                                .queueName("q")
                                .jobKey("k")
                                .priority(-3)
                                .flags("a,b")
                                .build())
                        .build());

        JsonNode schedule = one("all");

        assertThat(schedule.path("upcoming").valueStream().map(JsonNode::asString))
                .containsExactly(
                        "2030-01-01T03:00:00Z",
                        "2031-01-01T03:00:00Z",
                        "2032-01-01T03:00:00Z",
                        "2033-01-01T03:00:00Z",
                        "2034-01-01T03:00:00Z");
        assertThat(schedule.path("payload").asString()).isEqualTo("{\"to\":\"ada\"}");
        assertThat(schedule.path("payloadWhole").asBoolean()).isTrue();
        assertThat(schedule.path("overlap").asString()).isEqualTo("skip");
        assertThat(schedule.path("misfire").asString()).isEqualTo("run-all");
        assertThat(schedule.path("backfill").asString()).isEqualTo("7 days");
        assertThat(schedule.path("jitterMs").asInt()).isEqualTo(300_000);
        assertThat(schedule.path("flags").toString()).isEqualTo("[\"a,b\"]");
        assertThat(schedule.path("lastJob").isNull()).isTrue();
    }

    @Test
    void theLastJobIsFollowedAsLongAsItIsThere() {
        schedules(application).put(yearly("last").build());
        long job = http.json("/default/schedules/trigger", body("last"))
                .path("jobId")
                .asLong();
        application
                .sql("update {schema}.pgworker_schedules set last_job_id = ?, last_at = now()")
                .param(job)
                .update();

        assertThat(one("last").path("lastJob").path("state").asString()).isEqualTo("ready");
        application.sql("delete from {schema}._private_jobs").update();
        assertThat(one("last").path("lastJob").path("id").asLong()).isEqualTo(job);
        assertThat(one("last").path("lastJob").path("state").isNull()).isTrue();
    }

    @Test
    void oneIsMadeAndChangedByAForm() {
        String recurrence = "\"kind\":\"crontab\",\"expression\":\"0 4 * * *\",\"zone\":\"Europe/Berlin\"";
        http.json("/default/schedules", body("new", "\"task\":\"mail\",\"payload\":\"{\\\"n\\\":1.10}\"", recurrence));
        var twice = http.post("/default/schedules", body("new", "\"task\":\"mail\"", recurrence));
        assertThat(twice.statusCode()).isEqualTo(409);
        assertThat(Http.error(twice)).startsWith("name must be another one");

        String readAs = "\"updatedAt\":\"" + one("new").path("updatedAt").asString() + "\"";
        String changed = body(
                "new",
                "\"task\":\"post\",\"kind\":\"fixed-delay\",\"every\":\"PT10M\",\"overlap\":\"queue\",\"jitter\":\"PT5S\"",
                readAs);
        http.json("/default/schedules/change", changed);

        Schedule schedule = schedules(application).find("new").orElseThrow().schedule();
        assertThat(schedule.recurrence().every()).isEqualTo(Duration.ofMinutes(10));
        assertThat(schedule.overlap()).isEqualTo(Overlap.QUEUE);
        assertThat(schedule.job().identifier()).isEqualTo("post");
        assertThat(schedule.job().payload()).as("kept").hasToString("{\"n\":1.10}");
        var late = http.post("/default/schedules/change", changed);
        assertThat(late.statusCode()).isEqualTo(409);
        assertThat(Http.error(late)).contains("changed meanwhile");
        assertThat(http.post("/default/schedules/change", body("none", "\"task\":\"mail\"", recurrence))
                        .statusCode())
                .isEqualTo(404);
    }

    @Test
    void whatAnApplicationDeclaresIsChangedThere() {
        schedules(application).put(yearly("declared").build());
        application
                .sql("update {schema}.pgworker_schedules set declared = true")
                .update();

        var answer = http.post(
                "/default/schedules/change",
                body("declared", "\"task\":\"mail\",\"kind\":\"fixed-delay\",\"every\":\"PT10M\""));

        assertThat(answer.statusCode()).isEqualTo(409);
        assertThat(Http.error(answer)).contains("declares");
        assertThat(http.json("/default/schedules/delete", body("declared"))
                        .path("text")
                        .asString())
                .isEqualTo("declared was deleted.");
    }

    @Test
    void onesAreTriggeredPausedResumedAndDeleted() {
        schedules(application).put(yearly("a").build());

        http.json("/default/schedules/pause", body("a"));
        assertThat(one("a").path("pausedBy").asString()).isEqualTo("dashboard");
        assertThat(one("a").path("state").asString()).isEqualTo("paused");
        JsonNode added =
                http.json("/default/schedules/trigger", body("a", "\"payload\":\"{\\\"to\\\":\\\"grace\\\"}\""));
        JsonNode job = Http.json.readTree(application
                .queries()
                .find(added.path("jobId").asLong())
                .orElseThrow()
                .payload());
        assertThat(job.path("to").asString()).isEqualTo("grace");
        assertThat(job.path("_cron").path("schedule").asString()).isEqualTo("a");
        http.json("/default/schedules/resume", body("a"));
        assertThat(one("a").path("state").asString()).isEqualTo("active");
        http.json("/default/schedules/delete", body("a"));
        assertThat(http.get("/default/schedules/one?name=a").statusCode()).isEqualTo(404);
        assertThat(http.json("/default/schedules/delete", body("a"))
                        .path("text")
                        .asString())
                .isEqualTo("a no longer existed.");
        assertThat(http.post("/default/schedules/trigger", body("a")).statusCode())
                .isEqualTo(400);
    }

    @Test
    void thePreviewTellsWhenItWouldBeDue() {
        JsonNode preview = http.json("/default/schedules/preview?kind=cron&expression=" + encode("0 0 0 29 2 ?")
                + "&zone=UTC&startsAt=2030-01-01T00:00:00Z&endsAt=2037-01-01T00:00:00Z");
        assertThat(preview.path("words").asString()).isEqualTo("At 00:00 on day 29 of the month in February (UTC)");
        assertThat(preview.path("next").toString()).isEqualTo("[\"2032-02-29T00:00:00Z\",\"2036-02-29T00:00:00Z\"]");
        assertThat(http.json("/default/schedules/preview?kind=fixed-rate&every=PT90M&origin=2026-01-01T00:00:00Z")
                        .path("next"))
                .hasSize(5);
        assertThat(http.json("/default/schedules/preview?kind=fixed-delay&every=PT1H&startsAt=2040-01-01T00:00:00Z"
                                + "&endsAt=2040-01-01T02:00:00Z")
                        .path("next")
                        .toString())
                .isEqualTo("[\"2040-01-01T00:00:00Z\",\"2040-01-01T01:00:00Z\"]");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "expression=0 4 * * *&zone=UTC|kind is required",
                "kind=weekly|kind must be one of crontab, cron, fixed_rate, fixed_delay",
                "kind=crontab&zone=UTC|expression is required",
                "kind=crontab&expression=0 4 * * *|zone is required",
                "kind=crontab&expression=0 4 * * *&zone=Mars/Olympus|zone must be a time zone such as Europe/Berlin",
                "kind=crontab&expression=0 61 * * *&zone=UTC|expression \"0 61 * * *\"",
                "kind=cron&expression=0 0 0 30 2 *&zone=UTC|expression",
                "kind=cron&expression=x&zone=UTC|expression",
                "kind=fixed-rate|every is required",
                "kind=fixed-rate&every=often|every must be a duration such as PT90M",
                "kind=fixed-rate&every=PT0.5S|every must be",
                "kind=fixed-delay&every=PT0S|every must be",
                "kind=fixed-rate&every=PT99999999999999H|every must be",
                "kind=fixed-rate&every=PT1H&origin=x|origin must be an instant",
                "kind=fixed-rate&every=PT1H&startsAt=2030-01-01T00:00:00Z&endsAt=2029-01-01T00:00:00Z|endsAt must be after",
            })
    void aWrongValueIsNamed(String query, String message) {
        StringBuilder encoded = new StringBuilder();
        for (String parameter : query.split("&")) {
            String[] parts = parameter.split("=", 2);
            encoded.append('&').append(parts[0]).append('=').append(encode(parts[1]));
        }

        var answer = http.get("/default/schedules/preview?" + encoded.substring(1));

        assertThat(answer.statusCode()).isEqualTo(400);
        assertThat(Http.error(answer)).startsWith(message);
    }

    @Test
    void severalWrongValuesAreNamedTogether() {
        var answer = http.post(
                "/default/schedules",
                "{\"name\":\"" + "n".repeat(129)
                        + "\",\"kind\":\"cron\",\"expression\":\"x\",\"zone\":\"Mars/Olympus\","
                        + "\"payload\":\"[]\",\"jitter\":\"-PT1S\",\"startsAt\":\"x\",\"overlap\":\"never\",\"backfill\":\"PT0S\","
                        + "\"queue\":\"" + "q".repeat(129) + "\",\"priority\":40000,\"maxAttempts\":0}");

        assertThat(answer.statusCode()).isEqualTo(400);
        assertThat(Http.error(answer).split("; "))
                .extracting(mistake -> mistake.split(" ")[0])
                .containsExactly(
                        "name",
                        "task",
                        "zone",
                        "expression",
                        "payload",
                        "jitter",
                        "startsAt",
                        "overlap",
                        "backfill",
                        "queueName",
                        "priority",
                        "maxAttempts");
        assertThat(Http.error(http.get("/default/schedules/preview?kind=fixed-rate&origin=x&every=y&endsAt=z"))
                        .split("; "))
                .extracting(mistake -> mistake.split(" ")[0])
                .containsExactly("origin", "every", "endsAt");
        assertThat(schedules(application).list(RecurringQuery.ALL)).isEmpty();
    }

    /** In a name that anybody may choose. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "a/b?c=d&e#f%2F%00",
                "\"'<b>\\",
                "\u202Egnp.exe\u202C \u05D0\u0628",
                "__proto__",
                " ",
                "\uD83D\uDE00",
                "a\nb\t\u0001",
            })
    void everyNameHasItsPage(String name) {
        schedules(application).put(yearly(name).build());
        schedules(application).put(yearly(name + "z".repeat(100)).build());

        assertThat(one(name).path("name").asString()).isEqualTo(name);
        assertThat(http.json("/default/schedules?prefix=" + encode(name)).path("schedules"))
                .hasSize(2);
        assertThat(http.json("/default/schedules?limit=1&after=" + encode(name))
                        .path("schedules")
                        .get(0)
                        .path("name")
                        .asString())
                .isEqualTo(name + "z".repeat(100));
        http.json("/default/schedules/pause", body(name));
        http.json("/default/schedules/delete", body(name));
        assertThat(schedules(application).find(name)).isEmpty();
    }

    /** The overview looks every ten seconds, so nobody may have looked before. */
    @Test
    void whatIsWrongNeedsAttention() {
        schedules(careful).put(yearly("a/b?").build());
        careful.sql("update {schema}.pgworker_schedules set problem = 'The queue is too long.', next_at = null")
                .update();
        schedules(careful).put(yearly("well").build());
        Http visitor = careful.api();

        assertThat(visitor.json("/default/overview").path("attention").toString())
                .contains("The schedule a/b? is not executed: The queue is too long.", "name=a%2Fb%3F");
        assertThat(visitor.json("/default/schedules?problem=true").path("schedules"))
                .hasSize(1);
        assertThat(visitor.json("/default/schedules/one?name=" + encode("a/b?"))
                        .path("schedule")
                        .path("state")
                        .asString())
                .isEqualTo("problem");
    }

    @Test
    void whatLeftEveryCrontabIsForgotten() {
        application
                .sql("insert into {schema}._private_known_crontabs (identifier, known_since) values ('gone', now())")
                .update();
        assertThat(http.json("/default/schedules/one?name=gone")
                        .path("item")
                        .path("identifier")
                        .asString())
                .isEqualTo("gone");

        assertThat(http.json("/default/crontab/forget", "{\"identifier\":\"gone\"}")
                        .path("text")
                        .asString())
                .isEqualTo("gone is forgotten.");
        assertThat(http.json("/default/crontab").path("items")).isEmpty();
        assertThat(http.get("/default/schedules/one?name=gone").statusCode()).isEqualTo(404);
    }

    /** Somebody has written it by SQL. */
    @Test
    void oneThatCannotBeReadHasAPageNevertheless() {
        schedules(application).put(yearly("odd").build());
        application
                .sql("update {schema}.pgworker_schedules set expression = '0 0 4 99 * *'")
                .update();

        assertThat(one("odd").path("state").asString()).isEqualTo("problem");
        assertThat(one("odd").path("problem").asString()).contains("0 0 4 99 * *");
        assertThat(http.json("/default/schedules").path("schedules")).hasSize(1);
        var change = http.post(
                "/default/schedules/change",
                body(
                        "odd",
                        "\"task\":\"mail\",\"kind\":\"fixed-delay\",\"every\":\"PT10M\"",
                        "\"updatedAt\":\"" + one("odd").path("updatedAt").asString() + "\""));
        assertThat(change.statusCode()).isEqualTo(409);
        http.json("/default/schedules/delete", body("odd"));
    }

    @Test
    void payloadsAreHiddenAsThoseOfJobsAre() {
        Http visitor = careful.api().with("X-May", "SCHEDULE").withCsrf();
        schedules(careful)
                .put(Schedule.builder(
                                "card",
                                Recurrence.fixedDelay(Duration.ofHours(1)),
                                "charge-card",
                                Map.of("number", "4111111111111111"))
                        .build());
        JsonNode card = visitor.json("/default/schedules/one?name=card").path("schedule");
        assertThat(card.path("payload").asString()).isEqualTo("{\"number\":\"****\"}");
        assertThat(card.path("payloadWhole").asBoolean()).isFalse();
        String change = "\"kind\":\"fixed-delay\",\"every\":\"PT2H\",\"updatedAt\":\""
                + card.path("updatedAt").asString() + "\"";

        var other = visitor.post("/default/schedules/change", body("card", "\"task\":\"send-greeting\"", change));
        assertThat(other.statusCode()).as("a task whose payloads are shown").isEqualTo(400);
        assertThat(Http.error(other)).startsWith("payload is required with another task");
        visitor.json("/default/schedules/change", body("card", "\"task\":\"charge-card\"", change));
        assertThat(schedules(careful)
                        .find("card")
                        .orElseThrow()
                        .schedule()
                        .job()
                        .payload())
                .hasToString("{\"number\":\"4111111111111111\"}");
    }

    @Test
    void whoMayOnlyTriggerMayNotChooseThePayload() {
        Http visitor = careful.api().with("X-May", "CRON").withCsrf();
        schedules(careful).put(yearly("a").build());

        var chosen = visitor.post("/default/schedules/trigger", body("a", "\"payload\":\"{}\""));
        assertThat(chosen.statusCode()).isEqualTo(403);
        assertThat(Http.error(chosen)).contains("the action add");
        visitor.json("/default/schedules/trigger", body("a"));
        for (String path : List.of("", "/change", "/delete")) {
            assertThat(visitor.post("/default/schedules" + path, body("a")).statusCode())
                    .isEqualTo(403);
        }
        assertThat(careful.api()
                        .with("X-May", "CRON")
                        .with("Content-Type", "application/json")
                        .post("/default/schedules/pause", body("a"))
                        .statusCode())
                .as("without the token")
                .isEqualTo(403);
    }
}
