package dev.pgworker.dashboard;

import java.time.Duration;
import java.util.List;
import java.util.Map;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.JsonNode;

import dev.pgworker.autoconfigure.WorkerInstances;
import dev.pgworker.limit.JobLimits;
import dev.pgworker.limit.Limit;
import dev.pgworker.limit.LimitStatus;

import static org.assertj.core.api.Assertions.assertThat;

/** What the pages read and change of limits that nobody puts into effect. */
class LimitsTest {

    private static final String GOOD = "\"name\":\"mail\",\"tasks\":[\"mail\",\"fax\"],\"maxRunning\":3";

    private static Application application;
    private static Application careful;
    private static Http http;

    @BeforeAll
    static void start() {
        application = Application.unsecured("pgworker.enabled=false", "pgworker.dashboard.allow-actions=true");
        http = application.api().withCsrf();
        careful = Application.unsecured(
                List.of(SchedulesTest.OneAction.class),
                "pgworker.enabled=false",
                "pgworker.dashboard.allow-actions=true");
    }

    @AfterAll
    static void stop() {
        application.close();
        careful.close();
    }

    @AfterEach
    void removeAll() {
        application.sql("delete from {schema}.pgworker_limits").update();
    }

    private static JobLimits limits() {
        return application
                .context()
                .getBean(WorkerInstances.class)
                .get(WorkerInstances.DEFAULT)
                .jobLimits();
    }

    private static Limit mail() {
        return limits().find("mail").map(LimitStatus::limit).orElseThrow();
    }

    private static String one(String field) {
        return http.json("/default/limits/one?name=mail").path(field).asString();
    }

    @Test
    void theyAreListedWithWhatTheyAllowAndHowMuchIsUsed() {
        limits().put(Limit.concurrency("mail", 3, "mail", "fax").per("tenant"));
        limits().put(Limit.rate("partner", 600, Duration.ofMinutes(1), "call").withBurst(20));

        JsonNode all = http.json("/default/limits").path("limits");
        assertThat(all).hasSize(2);
        assertThat(all.get(0).path("per").asString()).isEqualTo("tenant");
        assertThat(all.get(0).path("kind").asString()).isEqualTo("running");
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

    @Test
    void theyAreMadeChangedAndDeleted() {
        assertThat(http.post("/default/limits", "{" + GOOD + ",\"per\":\"a.b\"}")
                        .statusCode())
                .isEqualTo(200);
        assertThat(mail()).isEqualTo(Limit.concurrency("mail", 3, "mail", "fax").per("a.b"));
        assertThat(http.post("/default/limits", "{" + GOOD + "}"))
                .satisfies(answer -> assertThat(answer.statusCode()).isEqualTo(409))
                .satisfies(answer -> assertThat(answer.body()).contains("name must be another one"));

        String changed = "{\"name\":\"mail\",\"tasks\":[\"mail\"],\"maxStarts\":\"100\",\"period\":\"PT60S\","
                + "\"burst\":7,\"updatedAt\":\"" + one("updatedAt") + "\"}";
        assertThat(http.post("/default/limits/change", changed).statusCode()).isEqualTo(200);
        assertThat(mail())
                .isEqualTo(
                        Limit.rate("mail", 100, Duration.ofMinutes(1), "mail").withBurst(7));
        assertThat(http.post("/default/limits/change", changed))
                .as("as it was read before")
                .satisfies(answer -> assertThat(answer.statusCode()).isEqualTo(409))
                .satisfies(answer -> assertThat(answer.body()).contains("changed meanwhile"));

        assertThat(http.post("/default/limits/delete", "{\"name\":\"mail\"}").body())
                .contains("was deleted");
        assertThat(http.post("/default/limits", "{" + GOOD + "}").body())
                .as("while it is there")
                .contains("name must be another one");
        removeAll();
        assertThat(http.post("/default/limits/delete", "{\"name\":\"mail\"}").body())
                .contains("no longer existed");
    }

    @Test
    void fairSharesAreMadeAndChanged() {
        String share =
                "{\"name\":\"mail\",\"tasks\":[\"mail\"],\"per\":\"tenant\",\"weights\":[\"acme=3\",\"x, y=0.5\"]";
        assertThat(http.post("/default/limits", share + "}").statusCode()).isEqualTo(200);
        assertThat(mail())
                .isEqualTo(Limit.fairShare("mail", "mail").per("tenant").withWeights(Map.of("acme", 3.0, "x, y", 0.5)));
        JsonNode seen = http.json("/default/limits/one?name=mail");
        assertThat(seen.path("kind").asString()).isEqualTo("shares");
        assertThat(seen.path("weights").path("acme").asInt()).isEqualTo(3);

        String changed = share.replaceFirst("\\[\"acme.*", "[],\"updatedAt\":\"" + one("updatedAt") + "\"}");
        assertThat(http.post("/default/limits/change", changed).statusCode()).isEqualTo(200);
        assertThat(mail()).isEqualTo(Limit.fairShare("mail", "mail").per("tenant"));
    }

    /** Values come from payloads, which the visitors of one application may see, and those of the other not. */
    @Test
    void valuesAreShownToThoseOnlyWhoMaySeePayloads() {
        Application shown = Application.unsecured("pgworker.enabled=false", "pgworker.dashboard.payloads=shown");
        try {
            for (Application one : List.of(application, shown)) {
                JobLimits limits = one.context()
                        .getBean(WorkerInstances.class)
                        .get(WorkerInstances.DEFAULT)
                        .jobLimits();
                limits.put(Limit.concurrency("mail", 3, "mail").per("card"));
                limits.put(Limit.concurrency("all", 3, "mail"));
                one.jobs().addJob("mail", Map.of("card", "4711"));
                one.jobs().addJob("mail", Map.of("card", "4712"));
                one.sql("select {schema}.pgworker_apply_limits()").query().listOfRows();
            }
            assertThat(shown.api()
                            .json("/default/limits/one?name=mail&after=4711")
                            .path("values"))
                    .singleElement()
                    .satisfies(
                            value -> assertThat(value.path("value").asString()).isEqualTo("4712"));

            String hidden = http.get("/default/limits/one?name=mail&after=4711").body();
            assertThat(hidden)
                    .contains("\"#1\"", "\"#2\"", "\"valuesHidden\":true")
                    .doesNotContain("4711", "4712");
            assertThat(http.json("/default/limits/one?name=all").path("values"))
                    .as("the value of a limit without a field tells nothing")
                    .singleElement()
                    .satisfies(
                            value -> assertThat(value.path("value").asString()).isEmpty());
            http.json("/default/jobs")
                    .path("jobs")
                    .forEach(job -> assertThat(
                                    http.get("/default/jobs/" + job.path("id").asString())
                                            .body())
                            .contains("limit \\\"mail\\\"")
                            .doesNotContain("4711", "4712"));
        } finally {
            shown.close();
            application.sql("delete from {schema}._private_jobs").update();
        }
    }

    /** A path of names with dots in them cannot be told from another one by its text. */
    @Test
    void namesWithDotsStayAsTheyAre() {
        limits().put(Limit.concurrency("mail", 3, "mail").per(List.of("a.b", "c")));

        String change = "{" + GOOD.replace(":3", ":4") + ",\"per\":\"" + one("per") + "\",\"updatedAt\":\""
                + one("updatedAt") + "\"}";
        assertThat(http.post("/default/limits/change", change).statusCode()).isEqualTo(200);
        assertThat(mail().maxRunning()).isEqualTo(4);
        assertThat(mail().field()).containsExactly("a.b", "c");
    }

    @Test
    void allThatIsWrongIsSaidAtOnce() {
        assertThat(http.post(
                                "/default/limits",
                                "{\"tasks\":[],\"maxStarts\":0,\"period\":\"PT0.5S\",\"burst\":\"x\",\"per\":\"a..b\"}")
                        .body())
                .contains("name must", "tasks must", "maxStarts must", "period must", "burst must", "per must");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            {"maxRunning":0}                                   | maxRunning must be between 1 and 1000000
            {"maxRunning":1000001}                             | maxRunning must be between 1 and 1000000
            {"maxRunning":"2147483648"}                        | maxRunning must be an integer
            {}                                                 | maxRunning must be set
            {"maxStarts":1000,"period":"PT1S","burst":1}       | burst must be between 100 and 1000000
            {"maxStarts":1,"period":"P366D"}                   | period must be
            {"maxStarts":1,"period":"PT1e+21S"}                | period must be a duration
            {"weights":[]}                                     | per must be set
            {"weights":["acme"],"per":"a"}                     | weights must be such as
            {"weights":"acme=3","per":"a"}                     | weights must be a list
            {"maxRunning":1,"tasks":"mail"}                    | tasks must be a list
            {"maxRunning":1,"tasks":["\\u0000"]}               | tasks must
            """)
    void whatIsWrongIsSaid(String body, String said) {
        String whole = "{\"name\":\"mail\"," + (body.contains("tasks") ? "" : "\"tasks\":[\"mail\"]")
                + (body.equals("{}") || body.contains("tasks") ? "" : ",") + body.substring(1);

        assertThat(http.post("/default/limits", whole))
                .satisfies(answer -> assertThat(answer.statusCode()).isEqualTo(400))
                .satisfies(answer -> assertThat(answer.body()).contains(said));
        assertThat(limits().list()).isEmpty();
    }

    @Test
    void aDeclaredOneIsChangedWhereItIsDeclared() {
        limits().put(Limit.concurrency("mail", 3, "mail"));
        application.sql("update {schema}.pgworker_limits set declared = true").update();

        assertThat(http.post("/default/limits/change", "{" + GOOD + ",\"updatedAt\":\"" + one("updatedAt") + "\"}"))
                .satisfies(answer -> assertThat(answer.statusCode()).isEqualTo(409))
                .satisfies(answer -> assertThat(answer.body()).contains("An application declares this limit"));
        assertThat(http.post("/default/limits/delete", "{\"name\":\"mail\"}").statusCode())
                .as("for good, where no application declares it any more")
                .isEqualTo(200);
    }

    @Test
    void eachChangeTakesTheAction() {
        Http allowed = careful.api().with("X-May", "LIMIT").withCsrf();
        Http other = careful.api().with("X-May", "SCHEDULE").withCsrf();

        for (String what : List.of("limits", "limits/change", "limits/delete")) {
            assertThat(other.post("/default/" + what, "{" + GOOD + "}").statusCode())
                    .as(what)
                    .isEqualTo(403);
        }
        assertThat(careful.api()
                        .with("X-May", "LIMIT")
                        .with("Content-Type", "application/json")
                        .post("/default/limits", "{" + GOOD + "}")
                        .statusCode())
                .as("without the token")
                .isEqualTo(403);
        assertThat(allowed.post("/default/limits", "{" + GOOD + "}").statusCode())
                .isEqualTo(200);
    }
}
