package dev.pgworker.dashboard;

import java.net.URLEncoder;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

/** What the pages read and change of jobs that nobody runs. */
class ApiTest {

    private static final String HOSTILE = "</script><img src=x onerror=alert(1)>\"'&\u202e\ud83d\ude00 ../%2e";

    private static Application application;
    private static Http http;

    @BeforeAll
    static void start() {
        application = Application.unsecured(
                "pgworker.enabled=false", "pgworker.dashboard.allow-actions=true", "pgworker.dashboard.payloads=shown");
        http = application.api().withCsrf();
    }

    @AfterAll
    static void stop() {
        application.close();
    }

    @AfterEach
    void removeJobs() {
        application.sql("delete from {schema}._private_jobs").update();
    }

    private static Job add(String task, Object payload, JobSpec spec) {
        return application.jobs().addJob(task, payload, spec);
    }

    private static void fail(Job job, String error) {
        application.changes().permanentlyFail(List.of(job.id()), error);
    }

    @Test
    void theOverviewSaysWhatThereIs() {
        add("a", null, JobSpec.DEFAULT);
        add("b", null, JobSpec.builder().runAt(Instant.now().plusSeconds(3600)).build());
        fail(add("c", null, JobSpec.DEFAULT), "broken");

        JsonNode overview = http.json("/default/overview");

        assertThat(overview.path("backlog").path("ready").asInt()).isEqualTo(1);
        assertThat(overview.path("backlog").path("scheduled").asInt()).isEqualTo(1);
        assertThat(overview.path("backlog").path("failed").asInt()).isEqualTo(1);
        assertThat(overview.path("schema").asString()).isEqualTo(application.schema());
        assertThat(overview.path("statistics").path("recorded").asBoolean()).isTrue();
        assertThat(overview.path("attention")
                        .valueStream()
                        .map(item -> item.path("level").asString()))
                .containsExactly("error", "warning", "info");
        assertThat(overview.path("attention").toString())
                .contains("no worker has sent a heartbeat", "1 job has failed permanently", "pgworker.history.enabled");
    }

    @Test
    void jobsAreFilteredSortedAndPaged() {
        for (int i = 0; i < 7; i++) {
            add(
                    i < 4 ? "a" : "b",
                    Map.of("n", i),
                    JobSpec.builder().priority(i % 3).flags("f" + i % 2).build());
        }

        JsonNode page = http.json("/default/jobs?task=a&limit=3");
        assertThat(page.path("jobs")).hasSize(3);
        JsonNode rest = http.json("/default/jobs?task=a&limit=3&after=" + page.path("next"));
        assertThat(rest.path("jobs")).hasSize(1);
        assertThat(rest.path("next").isNull()).isTrue();
        assertThat(rest.path("limited").asBoolean()).isFalse();
        assertThat(rest.path("jobs").get(0).path("payload").asString()).isEqualTo("{\"n\": 0}".replace(" ", ""));

        assertThat(http.json("/default/jobs?flag=f0").path("jobs")).hasSize(4);
        assertThat(http.json("/default/jobs?state=failed").path("jobs")).isEmpty();
        assertThat(http.json("/default/jobs?sort=priority")
                        .path("jobs")
                        .valueStream()
                        .map(job -> job.path("priority").asInt()))
                .isSorted();
        JsonNode found = http.json("/default/jobs?search=" + URLEncoder.encode("\"n\":5", UTF_8));
        assertThat(found.path("jobs")).hasSize(1);
        assertThat(found.path("searchedPayloads").asBoolean()).isTrue();
        JsonNode count = http.json("/default/jobs/count?task=b");
        assertThat(count.path("ready").asInt()).isEqualTo(3);
        assertThat(count.path("total").asInt()).isEqualTo(3);
        assertThat(count.path("complete").asBoolean()).isTrue();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "/default/jobs?state=odd|state must be one of ready, scheduled",
                "/default/jobs?limit=0|limit must be between 1 and 200, but is 0.",
                "/default/jobs?limit=x|limit must be an integer",
                "/default/jobs?limit=99999999999|limit must be an integer",
                "/default/jobs?after=x|after must be a whole number",
                "/default/jobs?from=yesterday|from must be an instant such as",
                "/default/jobs?from=%2B1000000000-12-31T23:59:59.999999999Z|from must",
                "/default/jobs?sort=x|sort must be one of newest",
                "/default/jobs?task=%00|task",
                "/default/series?window=25h|window must be between 1m and 24h",
                "/default/series?window=0m|window must be between",
                "/default/series?points=0|points must be between 1 and 1440",
                "/default/history?outcome=x|outcome must be one of",
                "/default/queues?limit=1001|limit must be between",
                "/default/live?ids=1,x|ids must be ids of jobs",
                "/default/live?ids=%ff|The query of the address must be UTF-8",
            })
    void wrongParametersAreNamed(String path, String message) {
        var answer = http.get(path);

        assertThat(answer.statusCode()).isEqualTo(400);
        assertThat(Http.error(answer)).contains(message);
    }

    /** As only a client of its own would send it. */
    @ParameterizedTest
    @ValueSource(strings = {"%ff", "%zz", "%ED%A0%80", "%"})
    void textThatCannotBeDecodedIsRefused(String text) {
        String answer = UnsecuredTest.raw(
                application.port(),
                "GET /pgworker/api/default/jobs?search=" + text
                        + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");

        assertThat(answer).startsWith("HTTP/1.1 400");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/default/jobs/1",
                "/default/jobs/99999999999999999999",
                "/default/jobs/9999999999999999999",
                "/default/jobs/x",
                "/other/jobs",
                "/default/nothing",
                "/default",
                "/default/bulk/abc",
                "/default/bulk/AAAAAAAAAAAAAAAAAAAAAAAA",
                ""
            })
    void whatDoesNotExistIsNotFound(String path) {
        var answer = http.get(path);

        assertThat(answer.statusCode()).isEqualTo(404);
        assertThat(Http.error(answer)).endsWith(".");
    }

    @Test
    void hostileTextArrivesAsItIs() {
        Job job = add(
                HOSTILE,
                Map.of("text", HOSTILE),
                JobSpec.builder()
                        .queueName(HOSTILE)
                        .jobKey(HOSTILE)
                        .flags(HOSTILE)
                        .build());
        fail(job, HOSTILE + "\nsecond line\n" + "x".repeat(10_000));

        JsonNode listed = http.json("/default/jobs?task=" + URLEncoder.encode(HOSTILE, UTF_8)
                        + "&queue=" + URLEncoder.encode(HOSTILE, UTF_8) + "&key=" + URLEncoder.encode(HOSTILE, UTF_8)
                        + "&flag=" + URLEncoder.encode(HOSTILE, UTF_8))
                .path("jobs")
                .get(0);
        JsonNode one = http.json("/default/jobs/" + job.id()).path("job");

        assertThat(listed.path("task").asString()).isEqualTo(HOSTILE);
        assertThat(listed.path("error").asString()).isEqualTo(HOSTILE);
        assertThat(one.path("error").asString()).hasSizeGreaterThan(10_000);
        assertThat(Http.json
                        .readTree(one.path("payload").asString())
                        .path("text")
                        .asString())
                .isEqualTo(HOSTILE);
        assertThat(http.json("/default/queues")
                        .path("queues")
                        .get(0)
                        .path("name")
                        .asString())
                .isEqualTo(HOSTILE);
        assertThat(http.json("/default/jobs/" + job.id())
                        .path("wait")
                        .path("reason")
                        .asString())
                .isEqualTo("failed");
    }

    @Test
    void largePayloadsAreCut() {
        Job job = add("large", "x".repeat(3_000_000), JobSpec.DEFAULT);

        JsonNode listed = http.json("/default/jobs").path("jobs").get(0);
        JsonNode one = http.json("/default/jobs/" + job.id()).path("job");

        assertThat(listed.path("payloadCut").asBoolean()).isTrue();
        assertThat(listed.path("payload").asString()).hasSizeLessThan(1_100);
        assertThat(one.path("payloadCut").asBoolean()).isTrue();
        assertThat(one.path("payload").asString()).hasSizeBetween(400_000, 500_001);
        assertThat(one.path("payloadHidden").asBoolean()).isFalse();
    }

    @Test
    void allOtherPagesAnswer() {
        add("a", null, JobSpec.builder().queueName("q").build());

        assertThat(http.json("/default/series?window=15m&points=15").path("points"))
                .hasSize(15);
        assertThat(http.json("/default/history").path("entries")).isEmpty();
        assertThat(http.json("/default/history").path("status").path("enabled").asBoolean())
                .isFalse();
        assertThat(http.json("/default/queues")
                        .path("queues")
                        .valueStream()
                        .filter(queue -> queue.path("name").asString().equals("q"))
                        .map(queue -> queue.path("waiting").asInt()))
                .containsExactly(1);
        assertThat(http.json("/default/tasks")
                        .path("tasks")
                        .valueStream()
                        .map(task -> task.path("name").asString()))
                .contains("a");
        assertThat(http.json("/default/crontab").path("items")).isEmpty();
        assertThat(http.json("/default/workers").path("workers")).isEmpty();
        assertThat(http.json("/default/maintenance").path("cleanup").size()).isEqualTo(4);
        assertThat(http.json("/me").path("payloads").asString()).isEqualTo("all");
    }

    @Test
    void jobsAreChanged() {
        Job later = add(
                "a",
                null,
                JobSpec.builder().runAt(Instant.now().plusSeconds(3600)).build());
        Job other = add("a", null, JobSpec.DEFAULT);

        JsonNode runNow = http.json("/default/jobs/run-now", "{\"ids\":[" + later.id() + ",999]}");
        assertThat(runNow.path("changed").toString()).isEqualTo("[" + later.id() + "]");
        assertThat(runNow.path("skipped").toString()).isEqualTo("[999]");
        assertThat(runNow.path("text").asString()).isEqualTo("1 of 2 jobs is due now; 1 no longer exists.");

        String ids = "{\"ids\":[" + other.id() + "]";
        assertThat(http.json("/default/jobs/reschedule", ids + ",\"priority\":7}")
                        .path("text")
                        .asString())
                .isEqualTo("The job was rescheduled.");
        assertThat(application.queries().find(other.id()).orElseThrow().priority())
                .isEqualTo(7);
        http.json("/default/jobs/fail", ids + ",\"reason\":\"because\"}");
        assertThat(application.queries().find(other.id()).orElseThrow().lastError())
                .isEqualTo("because");
        assertThat(Http.error(http.post("/default/jobs/fail", ids + "}"))).isEqualTo("reason is required.");
        assertThat(http.json("/default/jobs/complete", ids + "}").path("changed"))
                .hasSize(1);
        assertThat(http.json("/default/jobs/remove", "{\"ids\":[" + later.id() + "]}")
                        .path("changed"))
                .hasSize(1);
        assertThat(application.queries().backlog().ready()).isZero();
        assertThat(http.post("/default/jobs/remove", "{\"ids\":[]}").statusCode())
                .isEqualTo(400);
        assertThat(http.post("/default/jobs/explode", "{\"ids\":[1]}").statusCode())
                .isEqualTo(404);
    }

    @Test
    void jobsAreAdded() {
        JsonNode added = http.json("/default/jobs", """
                {"task": "t", "payload": "{\\"b\\": 1.10, \\"a\\": [1e400, null]}", "queue": "q", "key": "k",
                 "keyMode": "preserve_run_at", "priority": -3, "maxAttempts": 2, "flags": ["x", "y"],
                 "runAt": "2030-01-01T00:00:00Z"}""");

        Job job = application.queries().find(added.path("id").asLong()).orElseThrow();
        assertThat(job.payload()).isEqualTo("{\"b\":1.10,\"a\":[1E+400,null]}");
        assertThat(job.queueName()).isEqualTo("q");
        assertThat(job.key()).isEqualTo("k");
        assertThat(job.flags()).containsExactlyInAnyOrder("x", "y");
        assertThat(job.runAt()).isEqualTo("2030-01-01T00:00:00Z");
        assertThat(job.maxAttempts()).isEqualTo(2);
    }

    @Test
    void aJobOfTheSameKeyIsReplaced() {
        String body = "{\"task\": \"t\", \"key\": \"twice\"";
        JsonNode first = http.json("/default/jobs", body + "}");
        String id = first.path("id").toString();

        assertThat(first.path("text").asString()).isEqualTo("Job " + id + " was added.");
        assertThat(http.json("/default/jobs", body + ", \"priority\": 7}")
                        .path("text")
                        .asString())
                .isEqualTo("Job " + id + " had this key and was replaced.");
        assertThat(http.json("/default/jobs", body + ", \"keyMode\": \"unsafe_dedupe\"}")
                        .path("text")
                        .asString())
                .isEqualTo("Job " + id + " had this key before and stays as it is.");
    }

    @Test
    void dataIsCleanedUpAfterAPreview() {
        fail(add("a", null, JobSpec.DEFAULT), "x");
        String tasks = "{\"tasks\":[\"DELETE_PERMAFAILED_JOBS\"]";

        assertThat(http.json("/default/cleanup", tasks + ",\"dryRun\":true}")
                        .path("text")
                        .asString())
                .isEqualTo("Would delete 1 row.");
        assertThat(application.queries().backlog().failed()).isEqualTo(1);
        assertThat(http.json("/default/cleanup", tasks + "}").path("text").asString())
                .isEqualTo("Deleted 1 row.");
        assertThat(application.queries().backlog().failed()).isZero();
        assertThat(Http.error(http.post("/default/cleanup", "{\"tasks\":[\"ALL\"]}")))
                .contains("GC_JOB_QUEUES");
    }

    @Test
    void deadWorkersAreSwept() {
        assertThat(http.json("/default/sweep", "{\"dryRun\":true}").path("text").asString())
                .isEqualTo("0 dead workers.");
        assertThat(http.json("/default/force-unlock", "{\"workers\":[\"gone\"]}")
                        .path("text")
                        .asString())
                .isEqualTo("Released the jobs and queues of 1 worker.");
        assertThat(http.post("/default/sweep", "{\"thresholdMs\":1000}").statusCode())
                .isEqualTo(400);
        assertThat(http.post("/default/sweep", "{\"thresholdMs\":9223372036854775807}")
                        .statusCode())
                .isIn(200, 400);
    }

    @Test
    void theStepsOfAJobAreShownAndSignalsSent() {
        Job job = add("order", Map.of(), JobSpec.DEFAULT);
        application
                .sql(
                        "insert into {schema}.pgworker_steps (job_id, revision, name, kind, signal, claim, attempt, started_at, ended_at,"
                                + " due_at, result_type, result) values"
                                + " (?, 0, 'charge', 'run', null, now(), 1, now(), now(), null, 'Charge', '{\"id\": 7}'),"
                                + " (?, 0, 'approval', 'wait', 'approval', now(), 1, now(), null, now() + interval '1 day', null, null)")
                .params(job.id(), job.id())
                .update();

        JsonNode steps = http.json("/default/jobs/" + job.id()).path("steps");

        assertThat(steps).hasSize(2);
        JsonNode charge = steps.get(0).path("name").asString().equals("charge") ? steps.get(0) : steps.get(1);
        assertThat(charge.path("kind").asString()).isEqualTo("run");
        assertThat(charge.path("result").asString()).isEqualTo("{\"id\": 7}");
        assertThat(http.json("/default/signals", "{\"name\":\"approval\",\"payload\":\"1\"}")
                        .path("text")
                        .asString())
                .isEqualTo("The signal was sent.");
        assertThat(http.post("/default/signals", "{\"payload\":\"1\"}").statusCode())
                .isEqualTo(400);
        assertThat(application
                        .sql("select payload from {schema}.pgworker_signals")
                        .query(String.class)
                        .list())
                .containsExactly("1");
        application.sql("delete from {schema}.pgworker_signals").update();
        application.sql("delete from {schema}.pgworker_steps").update();
    }

    @Test
    void jobsAreCancelledAlsoThoseThatRun() {
        Job waiting = add(
                "a",
                null,
                JobSpec.builder().runAt(Instant.now().plusSeconds(3600)).build());
        Job running = add(
                "a",
                null,
                JobSpec.builder().runAt(Instant.now().plusSeconds(3600)).build());
        application
                .sql(
                        "update {schema}._private_jobs set locked_at = now(), locked_by = 'pool-1', attempts = 1 where id = ?")
                .param(running.id())
                .update();

        JsonNode one = http.json("/default/jobs/cancel", "{\"ids\":[" + waiting.id() + "]}");
        assertThat(one.path("text").asString()).isEqualTo("The job was deleted.");
        JsonNode some = http.json("/default/jobs/cancel", "{\"ids\":[" + waiting.id() + "," + running.id() + "]}");
        assertThat(some.path("changed").toString()).isEqualTo("[" + running.id() + "]");
        assertThat(some.path("skipped").toString()).isEqualTo("[" + waiting.id() + "]");
        assertThat(some.path("text").asString())
                .isEqualTo(
                        "1 job is running in a worker that cannot be notified, and does not run again. 1 job no longer exists.");
        JsonNode page = http.json("/default/jobs/" + running.id());
        assertThat(page.path("cancellation").path("state").asString()).isEqualTo("marked");
        assertThat(page.path("cancellation").path("workerId").asString()).isEqualTo("pool-1");
        assertThat(page.path("cancellation").path("requestedBy").asString()).isEqualTo("dashboard");
    }

    @Test
    void whatWasSelectedIsChangedAndNothingElse() throws Exception {
        application
                .jobs()
                .addJobs(IntStream.range(0, 1_200)
                        .mapToObj(i -> JobRequest.of("many", i))
                        .toList());
        JsonNode preview = http.json(
                "/default/bulk/preview", "{\"action\":\"fail\",\"filter\":{\"task\":\"many\",\"state\":\"ready\"}}");
        assertThat(preview.path("selected").asInt()).isEqualTo(1_200);
        assertThat(preview.path("complete").asBoolean()).isTrue();
        assertThat(preview.path("sample")).hasSize(5);
        Job later = add("many", null, JobSpec.DEFAULT);
        String selection = preview.path("selection").asString();

        assertThat(http.post("/default/bulk", "{\"action\":\"remove\",\"selection\":\"" + selection + "\"}")
                        .statusCode())
                .isEqualTo(409);
        JsonNode bulk = http.json(
                "/default/bulk", "{\"action\":\"fail\",\"reason\":\"r\",\"selection\":\"" + selection + "\"}");
        JsonNode end = await(bulk.path("bulk").asString());

        assertThat(end.path("state").asString()).isEqualTo("done");
        assertThat(end.path("changed").asInt()).isEqualTo(1_200);
        assertThat(application.queries().backlog().failed()).isEqualTo(1_200);
        assertThat(application.queries().find(later.id()).orElseThrow().lastError())
                .isNull();
        assertThat(http.post(
                                "/default/bulk",
                                "{\"action\":\"fail\",\"reason\":\"r\",\"selection\":\"" + selection + "\"}")
                        .statusCode())
                .isEqualTo(404);
    }

    /** Asks until the change has ended. */
    private static JsonNode await(String bulk) {
        return Awaitility.await("the change of jobs ends")
                .until(
                        () -> http.json("/default/bulk/" + bulk),
                        change -> !change.path("state").asString().equals("running"));
    }

    @Test
    void selectionsNeedAnActionAndAFilterThatIsRight() {
        assertThat(Http.error(http.post("/default/bulk/preview", "{\"action\":\"sweep\"}")))
                .contains("action must be one of run-now, complete, fail, remove, cancel, reschedule");
        assertThat(Http.error(
                        http.post("/default/bulk/preview", "{\"action\":\"remove\",\"filter\":{\"state\":\"x\"}}")))
                .contains("state must be one of");
        assertThat(http.post("/default/bulk/AAAAAAAAAAAAAAAAAAAAAAAA/stop", "{}")
                        .statusCode())
                .isEqualTo(404);
    }
}
