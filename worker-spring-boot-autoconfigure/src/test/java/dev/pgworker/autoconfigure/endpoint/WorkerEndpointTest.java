package dev.pgworker.autoconfigure.endpoint;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.Principal;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import jakarta.servlet.Filter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import org.awaitility.Awaitility;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.data.jpa.autoconfigure.DataJpaRepositoriesAutoConfiguration;
import org.springframework.boot.hibernate.autoconfigure.HibernateJpaAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.testing.Greetings;
import dev.pgworker.autoconfigure.testing.RecordedEvents;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobsChanged;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.Schedule;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

/** The endpoint over real HTTP, in an application with everything that Spring Boot configures. */
class WorkerEndpointTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration(
            exclude = {HibernateJpaAutoConfiguration.class, DataJpaRepositoriesAutoConfiguration.class})
    static class Application {

        @Bean
        Greetings greetings() {
            return new Greetings();
        }

        /** Stands for whatever an application logs its users in with. */
        @Bean
        Filter login() {
            return (request, response, chain) -> chain.doFilter(
                    new HttpServletRequestWrapper((HttpServletRequest) request) {
                        @Override
                        public @Nullable Principal getUserPrincipal() {
                            String user = getHeader("X-User");
                            return user == null || user.isEmpty() ? null : () -> user;
                        }
                    },
                    response);
        }

        @Bean
        RecordedEvents events() {
            return new RecordedEvents();
        }
    }

    /** A running application and a client of its endpoint. */
    private final class Client implements AutoCloseable {

        final ConfigurableApplicationContext context;
        private final HttpClient http = HttpClient.newHttpClient();
        private final String url;

        Client(String... properties) {
            List<String> arguments = new ArrayList<>(List.of(
                    "--server.port=0",
                    "--spring.datasource.url=" + db.url(),
                    "--spring.flyway.enabled=false",
                    "--spring.main.banner-mode=off",
                    "--pgworker.schema.name=" + db.schema(),
                    "--management.endpoints.web.exposure.include=pgworker,health,prometheus"));
            for (String property : properties) {
                arguments.add("--" + property);
            }
            context = SpringApplication.run(Application.class, arguments.toArray(String[]::new));
            url = "http://localhost:" + context.getEnvironment().getProperty("local.server.port") + "/actuator";
        }

        HttpResponse<String> get(String path) throws IOException, InterruptedException {
            return send(HttpRequest.newBuilder(URI.create(url + path)).build());
        }

        HttpResponse<String> post(String path, String body) throws IOException, InterruptedException {
            return send(HttpRequest.newBuilder(URI.create(url + path))
                    .header("Content-Type", "application/json")
                    .header("X-User", user == null ? "" : user)
                    .POST(HttpRequest.BodyPublishers.ofString(body.replace('\'', '"')))
                    .build());
        }

        /** Who has logged in. */
        @Nullable String user;

        private HttpResponse<String> send(HttpRequest request) throws IOException, InterruptedException {
            return http.send(request, HttpResponse.BodyHandlers.ofString());
        }

        JsonNode json(HttpResponse<String> response) {
            assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
            return new JsonMapper().readTree(response.body());
        }

        @Override
        public void close() {
            context.close();
        }
    }

    @Test
    void showsJobsQueuesWorkersAndTheWhole() throws Exception {
        try (Client client = new Client()) {
            JobScheduler jobs = client.context.getBean(JobScheduler.class);
            Job mail = jobs.addJob(
                    "mail",
                    "secret",
                    JobSpec.builder().queueName("q").jobKey("k").build());
            Job other = jobs.addJob("other", "secret");

            JsonNode overview = client.json(client.get("/pgworker"));
            assertThat(overview.path("backlog").path("ready").asInt()).isEqualTo(2);
            assertThat(overview.path("tasks").path(0).asString()).isEqualTo("hello");
            assertThat(overview.path("status").path("workerId").asString())
                    .isEqualTo(client.context.getBean(Worker.class).id());
            assertThat(overview.path("status").path("reconciled").isNumber()).isTrue();
            assertThat(overview.path("status").path("stall").asString("")).isEmpty();
            assertThat(overview.path("status").path("stuckThreads").isEmpty()).isTrue();

            JsonNode page = client.json(client.get("/pgworker/jobs?limit=1"));
            assertThat(page.path("jobs").size()).isEqualTo(1);
            assertThat(page.path("jobs").path(0).path("id").asLong()).isEqualTo(other.id());
            JsonNode next = client.json(client.get("/pgworker/jobs?state=ready&limit=1&after="
                    + page.path("next").asLong()));
            assertThat(next.path("jobs").path(0).path("id").asLong()).isEqualTo(mail.id());
            assertThat(client.json(client.get("/pgworker/jobs?task=mail&queue=q"))
                            .path("jobs")
                            .size())
                    .isEqualTo(1);
            assertThat(client.json(client.get("/pgworker/jobs?state=failed"))
                            .path("jobs")
                            .size())
                    .isZero();

            HttpResponse<String> one = client.get("/pgworker/jobs/" + mail.id());
            assertThat(client.json(one).path("key").asString()).isEqualTo("k");
            assertThat(one.body()).doesNotContain("secret");
            assertThat(client.get("/pgworker/jobs/0").statusCode()).isEqualTo(404);
            assertThat(client.get("/pgworker/nothing").statusCode()).isEqualTo(404);

            JsonNode queue =
                    client.json(client.get("/pgworker/queues")).path("queues").path(0);
            assertThat(queue.path("name").asString()).isEqualTo("q");
            assertThat(queue.path("waiting").asInt()).isEqualTo(1);
            assertThat(client.json(client.get("/pgworker/queues?after=q"))
                            .path("queues")
                            .size())
                    .isZero();
            assertThat(client.get("/pgworker/workers").statusCode()).isEqualTo(200);
        }
    }

    @Test
    void pausesAndResumes() throws Exception {
        try (Client client = new Client("management.endpoint.health.show-details=always")) {
            client.user = "ann";
            for (String body :
                    List.of("{'task': 'mail', 'reason': 'down'}", "{'queue': 'q'}", "{'everything': true}")) {
                assertThat(client.json(client.post("/pgworker/pause", body))
                                .path("paused")
                                .asBoolean())
                        .isTrue();
            }
            JsonNode pauses = client.json(client.get("/pgworker/pauses")).path("pauses");
            assertThat(pauses.size()).isEqualTo(3);
            assertThat(pauses.path(2).path("name").asString()).isEqualTo("mail");
            assertThat(pauses.path(2).path("by").asString()).isEqualTo("ann");
            assertThat(pauses.path(2).path("reason").asString()).isEqualTo("down");
            Awaitility.await().until(() -> client.get("/health").body().contains("everything paused by ann since"));
            assertThat(client.get("/health").statusCode()).isEqualTo(200);
            assertThat(client.get("/prometheus").body())
                    .containsPattern("pgworker_pauses\\{.*} 3.0")
                    .containsPattern("pgworker_paused_since_seconds\\{.*} 1\\.");
            assertThat(client.json(client.post("/pgworker/resume", "{'everything': true}"))
                            .path("resumed")
                            .asBoolean())
                    .isTrue();
            for (String wrong : List.of("{'task': 'a', 'queue': 'b'}", "{}", "{'everything': false}")) {
                HttpResponse<String> refused = client.post("/pgworker/pause", wrong);
                assertThat(refused.statusCode()).isEqualTo(400);
                assertThat(refused.body()).contains("One of task, queue and everything is required, and only one");
            }
        }
    }

    @Test
    void showsPayloadsOnlyIfAllowed() throws Exception {
        try (Client client = new Client("pgworker.endpoint.show-payloads=true")) {
            Job job = client.context.getBean(JobScheduler.class).addJob("mail", "secret");

            assertThat(client.get("/pgworker/jobs/" + job.id()).body()).contains("secret");
            assertThat(client.json(client.get("/pgworker/jobs?search=secret"))
                            .path("jobs")
                            .size())
                    .isEqualTo(1);
        }
    }

    @Test
    void changesJobs() throws Exception {
        try (Client client = new Client()) {
            JobScheduler jobs = client.context.getBean(JobScheduler.class);
            JobQueries queries = client.context.getBean(JobQueries.class);
            RecordedEvents events = client.context.getBean(RecordedEvents.class);
            Job a = jobs.addJob("mail");
            Job b = jobs.addJob("mail");
            Job c = jobs.addJob("mail", null, JobSpec.builder().jobKey("k").build());

            assertThat(client.json(client.post(
                                    "/pgworker/complete", "{'ids': '" + a.id() + ", " + Long.MAX_VALUE + "'}"))
                            .path("changed")
                            .toString())
                    .isEqualTo("[" + a.id() + "]");
            assertThat(queries.find(a.id())).isEmpty();

            client.json(client.post("/pgworker/fail", "{'ids': " + b.id() + ", 'reason': 'wrong address'}"));
            assertThat(queries.find(b.id()).orElseThrow().lastError()).isEqualTo("wrong address");

            client.json(
                    client.post("/pgworker/reschedule", "{'ids': " + c.id() + ", 'runAt': 'PT1H', 'priority': -5}"));
            Job later = queries.find(c.id()).orElseThrow();
            assertThat(later.priority()).isEqualTo(-5);
            assertThat(later.runAt()).isAfter(java.time.Instant.now().plusSeconds(3_000));

            client.json(client.post("/pgworker/run-now", "{'ids': '" + b.id() + "," + c.id() + "'}"));
            assertThat(queries.find(b.id()).orElseThrow().attempts()).isZero();
            assertThat(queries.find(c.id()).orElseThrow().runAt()).isBefore(later.runAt());

            assertThat(client.json(client.post("/pgworker/remove", "{'key': 'k'}"))
                            .path("changed")
                            .toString())
                    .isEqualTo("[" + c.id() + "]");
            assertThat(client.json(client.post("/pgworker/remove", "{'key': 'k'}"))
                            .path("changed")
                            .size())
                    .isZero();

            Job cancelled = jobs.addJob(
                    "mail",
                    Map.of(),
                    JobSpec.builder().runIn(Duration.ofHours(1)).jobKey("k").build());
            assertThat(client.json(client.post("/pgworker/cancel", "{'key': 'k'}"))
                            .path("cancellations")
                            .path(0)
                            .path("state")
                            .asString())
                    .isEqualTo("REMOVED");
            assertThat(client.json(client.post("/pgworker/cancel", "{'ids': " + cancelled.id() + "}"))
                            .path("cancellations")
                            .path(0)
                            .path("state")
                            .asString())
                    .isEqualTo("GONE");
            assertThat(client.json(client.post("/pgworker/cancel", "{'task': 'none'}"))
                            .path("changed")
                            .asInt())
                    .isZero();
            assertThat(client.get("/pgworker/cancellations/" + cancelled.id()).statusCode())
                    .isEqualTo(404);

            client.json(client.post("/pgworker/fail", "{'ids': " + b.id() + ", 'reason': 'again'}"));
            assertThat(client.json(client.post("/pgworker/cleanup", "{'tasks': 'delete-permafailed-jobs'}"))
                            .toString())
                    .contains("1");
            assertThat(queries.find(b.id())).isEmpty();

            Job stuck = jobs.addJob(
                    "hello",
                    new Greetings.Greeting("Ada"),
                    JobSpec.builder().runIn(java.time.Duration.ofHours(1)).build());
            db.sql("update {schema}._private_jobs set locked_by = 'dead', locked_at = now(), run_at = now() where id = "
                            + stuck.id())
                    .update();
            client.json(client.post("/pgworker/force-unlock", "{'workers': 'dead'}"));
            assertThat(events.await(JobCompleted.class).job().id()).isEqualTo(stuck.id());
        }
    }

    @Test
    void findsJobsByMoreThanTheirState() throws Exception {
        try (Client client = new Client("pgworker.enabled=false")) {
            JobScheduler jobs = client.context.getBean(JobScheduler.class);
            Job keyed = jobs.addJob(
                    "mail",
                    "secret",
                    JobSpec.builder().jobKey("k").flags("vip").priority(3).build());
            Job later = jobs.addJob(
                    "mail",
                    "secret",
                    JobSpec.builder()
                            .runAt(java.time.Instant.parse("2099-01-01T00:00:00Z"))
                            .build());

            assertThat(ids(client, "key=k")).containsExactly(keyed.id());
            assertThat(ids(client, "flag=vip")).containsExactly(keyed.id());
            assertThat(ids(client, "from=2098-01-01T00:00:00Z&to=2100-01-01T00:00:00Z"))
                    .containsExactly(later.id());
            assertThat(ids(client, "sort=priority")).containsExactly(later.id(), keyed.id());
            assertThat(ids(client, "search=k")).containsExactly(keyed.id());
            assertThat(ids(client, "search=secret")).isEmpty();
            JsonNode bounded = client.json(client.get("/pgworker/jobs?scanLimit=1&task=none"));
            assertThat(bounded.path("limited").asBoolean()).isTrue();
            assertThat(bounded.path("next").asLong()).isEqualTo(later.id());

            JsonNode one = client.json(client.get("/pgworker/jobs/" + later.id()));
            assertThat(one.path("state").asString()).isEqualTo("SCHEDULED");
            assertThat(one.path("wait").path("reason").asString()).isEqualTo("TIME");
            assertThat(client.json(client.get("/pgworker/tasks"))
                            .path("tasks")
                            .path(0)
                            .path("waiting")
                            .asInt())
                    .isEqualTo(1);
            assertThat(client.json(client.get("/pgworker/running"))
                            .path("running")
                            .size())
                    .isZero();
            JsonNode statistics = client.json(client.get("/pgworker/statistics?window=PT1H&points=6"));
            assertThat(statistics.path("series").size()).isEqualTo(6);
        }
    }

    private static List<Long> ids(Client client, String query) throws Exception {
        List<Long> ids = new ArrayList<>();
        client.json(client.get("/pgworker/jobs?" + query))
                .path("jobs")
                .forEach(job -> ids.add(job.path("id").asLong()));
        return ids;
    }

    @Test
    void changesAllThatMatchInTheNameOfTheUser() throws Exception {
        try (Client client = new Client("pgworker.enabled=false")) {
            JobScheduler jobs = client.context.getBean(JobScheduler.class);
            RecordedEvents events = client.context.getBean(RecordedEvents.class);
            for (int i = 0; i < 5; i++) {
                jobs.addJob(i == 0 ? "other" : "mail", "secret");
            }

            assertThat(client.post("/pgworker/fail", "{'task': 'mail', 'reason': 'old', 'dryRun': true}")
                            .body())
                    .contains("\"selected\":4", "\"complete\":true");
            assertThat(client.post("/pgworker/fail", "{'task': 'mail', 'reason': 'old', 'limit': 3}")
                            .body())
                    .contains("\"selected\":3", "\"complete\":false", "\"changed\":3");
            assertThat(client.post("/pgworker/remove", "{'search': 'secret', 'dryRun': 'true'}")
                            .body())
                    .contains("\"selected\":0");
            client.user = "kim";
            assertThat(client.post("/pgworker/run-now", "{'state': 'failed'}").body())
                    .contains("\"selected\":3", "\"changed\":3");
            assertThat(client.post("/pgworker/cleanup", "{'tasks': 'gc-task-identifiers', 'dryRun': true}")
                            .body())
                    .contains("\"GC_TASK_IDENTIFIERS\":0");
            assertThat(client.post("/pgworker/remove", "{'task': 'mail', 'state': 'ready'}")
                            .body())
                    .contains("\"changed\":4");
            assertThat(client.context
                            .getBean(JobQueries.class)
                            .count(JobQuery.ALL)
                            .total())
                    .isEqualTo(1);
            assertThat(events.all(JobsChanged.class))
                    .extracting(JobsChanged::action, JobsChanged::count, JobsChanged::user)
                    .containsExactly(tuple("fail", 3L, null), tuple("run-now", 3L, "kim"), tuple("remove", 4L, "kim"));
        }
    }

    @Test
    void showsWhatBecameOfJobs() throws Exception {
        try (Client client = new Client("pgworker.enabled=false")) {
            JsonNode none = client.json(client.get("/pgworker/history?task=mail&limit=5"));
            assertThat(none.path("entries").size()).isZero();
            assertThat(none.path("status").path("enabled").asBoolean()).isFalse();
            assertThat(client.json(client.get("/pgworker/history/4711"))
                            .path("entries")
                            .size())
                    .isZero();
        }
    }

    @Test
    void sweepsDeadWorkersUnlessTold() throws Exception {
        try (Client client = new Client()) {
            db.sql(
                            "insert into {schema}._private_workers (id, last_heartbeat_at) values ('dead', now() - interval '1 hour')")
                    .update();

            JsonNode found = client.json(client.post("/pgworker/sweep", "{'threshold': 'PT10M', 'dryRun': true}"));
            assertThat(found.path("workerIds").toString()).isEqualTo("[\"dead\"]");
            JsonNode swept =
                    client.json(client.post("/pgworker/sweep", "{'threshold': 'PT10M', 'recoveryDelay': 'PT0S'}"));
            assertThat(swept.path("workerIds").toString()).isEqualTo("[\"dead\"]");
            assertThat(client.json(client.post("/pgworker/sweep", "{'threshold': 'PT10M'}"))
                            .path("workerIds")
                            .size())
                    .isZero();
        }
    }

    @Test
    void showsTriggersAndPausesRecurringJobs() throws Exception {
        try (Client client = new Client("pgworker.crontab=0 4 1 1 * report ?id=yearly&fill=2d&tz=Europe/Berlin")) {
            JsonNode item = client.json(client.get("/pgworker/recurring?origin=crontab"))
                    .path("recurring")
                    .path(0);
            assertThat(item.path("id").asString()).isEqualTo("yearly");
            assertThat(item.path("task").asString()).isEqualTo("report");
            assertThat(item.has("nextRun")).isTrue();
            assertThat(item.path("expression").asString()).isEqualTo("0 4 1 1 *");
            assertThat(item.path("zone").asString()).isEqualTo("Europe/Berlin");
            assertThat(item.path("backfill").asString()).isEqualTo("PT48H");
            assertThat(item.path("origin").asString()).isEqualTo("crontab");
            assertThat(item.path("overlap").asString()).isEqualTo("allow");
            assertThat(item.has("createdAt"))
                    .as("registered when the application has started")
                    .isTrue();

            long job = client.json(client.post("/pgworker/recurring-trigger", "{'name': 'yearly'}"))
                    .path("job")
                    .asLong();
            assertThat(client.json(client.get("/pgworker/jobs/" + job))
                            .path("task")
                            .asString())
                    .isEqualTo("report");
            assertThat(client.json(client.post("/pgworker/recurring-pause", "{'name': 'yearly'}"))
                            .path("changed")
                            .asBoolean())
                    .isTrue();
            assertThat(client.json(client.get("/pgworker/recurring/yearly")).has("pausedSince"))
                    .isTrue();
            assertThat(client.json(client.post("/pgworker/recurring-resume", "{'name': 'yearly'}"))
                            .path("changed")
                            .asBoolean())
                    .isTrue();
            HttpResponse<String> unknown = client.post("/pgworker/recurring-trigger", "{'name': 'daily'}");
            assertThat(unknown.statusCode()).isEqualTo(400);
            assertThat(unknown.body()).contains("but there is none");
            HttpResponse<String> own = client.post("/pgworker/recurring-delete", "{'name': 'yearly'}");
            assertThat(own.statusCode()).isEqualTo(400);
            assertThat(own.body()).contains("remove it there first");
        }
    }

    @Test
    void showsMakesAndDeletesLimits() throws Exception {
        try (Client client = new Client("pgworker.enabled=false")) {
            JsonNode mail = client.json(client.post(
                    "/pgworker/limit-put", "{'name': 'mail', 'tasks': 'mail, fax', 'maxRunning': 3, 'per': 'tenant'}"));
            assertThat(mail.path("phase").asString()).isEqualTo("applying");
            assertThat(client.json(
                                    client.post(
                                            "/pgworker/limit-put",
                                            "{'name': 'a/b', 'tasks': 'call', 'maxStarts': 600, 'period': 'PT1M', 'burst': 20}"))
                            .path("burst")
                            .asInt())
                    .isEqualTo(20);
            JsonNode all = client.json(client.get("/pgworker/limits")).path("limits");
            assertThat(all).hasSize(2);
            assertThat(all.get(1).path("tasks").get(0).asString()).isEqualTo("fax");
            assertThat(all.get(1).path("waiting").asInt()).isZero();
            assertThat(client.json(client.get("/pgworker/limits/mail"))
                            .path("values")
                            .size())
                    .isZero();
            assertThat(client.json(client.get("/pgworker/limits?name=a/b"))
                            .path("maxStarts")
                            .asInt())
                    .isEqualTo(600);
            assertThat(client.get("/pgworker/limits/none").statusCode()).isEqualTo(404);
            HttpResponse<String> wrong =
                    client.post("/pgworker/limit-put", "{'name': 'x', 'tasks': 'a', 'maxRunning': 0}");
            assertThat(wrong.statusCode()).isEqualTo(400);
            assertThat(wrong.body()).contains("maxRunning must be between 1 and 1000000, but is 0");
            assertThat(client.post("/pgworker/limit-put", "{'name': 'x', 'tasks': 'a'}")
                            .body())
                    .contains("maxRunning must be set, or else maxStarts and period, or else weights and per");
            assertThat(client.post("/pgworker/limit-put", "{'name': 'x', 'tasks': 'a', 'maxRunning': 1, 'burst': 5}")
                            .body())
                    .contains("burst must not be combined with maxRunning");
            assertThat(client.json(
                                    client.post(
                                            "/pgworker/limit-put",
                                            "{'name': 'turns', 'tasks': 'turn', 'per': 'tenant', 'weights': 'acme=3, globex=0.5'}"))
                            .path("weights")
                            .path("globex")
                            .asDouble())
                    .isEqualTo(0.5);
            assertThat(client.post("/pgworker/limit-put", "{'name': 'x', 'tasks': 'a', 'weights': 'acme=3'}")
                            .body())
                    .contains("per must be set together with weights");
            assertThat(changed(client, "limit-delete", "{'name': 'mail'}")).isTrue();
            assertThat(changed(client, "limit-delete", "{'name': 'none'}")).isFalse();
        }
    }

    @Test
    void showsValuesOfLimitsOnlyIfPayloadsAreShown() throws Exception {
        for (boolean shown : List.of(false, true)) {
            try (Client client = new Client("pgworker.enabled=false", "pgworker.endpoint.show-payloads=" + shown)) {
                client.json(client.post(
                        "/pgworker/limit-put", "{'name': 'mail', 'tasks': 'mail', 'maxRunning': 1, 'per': 'card'}"));
                JobScheduler jobs = client.context.getBean(JobScheduler.class);
                long id = jobs.addJob("mail", Map.of("card", "4711")).id();
                jobs.addJob("mail", Map.of("card", "4712"));
                db.sql("select {schema}.pgworker_apply_limits()").query().listOfRows();

                String one = client.get("/pgworker/limits/mail?limit=1").body();
                HttpResponse<String> next = client.get("/pgworker/limits/mail?after=4711");
                if (shown) {
                    assertThat(one).contains("4711").doesNotContain("4712");
                    assertThat(next.body()).contains("4712").doesNotContain("4711");
                } else {
                    assertThat(one).contains("\"#1\"").doesNotContain("4711", "\"next\"");
                    assertThat(next.statusCode()).isEqualTo(400);
                    assertThat(next.body()).contains("pgworker.endpoint.show-payloads");
                    assertThat(client.get("/pgworker/jobs/" + id).body())
                            .contains("limit \\\"mail\\\"")
                            .doesNotContain("4711");
                }
            }
        }
    }

    @Test
    void sendsSignalsAndShowsSteps() throws Exception {
        for (boolean shown : List.of(false, true)) {
            try (Client client = new Client("pgworker.enabled=false", "pgworker.endpoint.show-payloads=" + shown)) {
                assertThat(client.json(client.post("/pgworker/signal", "{'name': 'go', 'payload': '1.70'}"))
                                .path("sent")
                                .asString())
                        .isEqualTo("go");
                assertThat(client.post("/pgworker/signal", "{'payload': '1'}").body())
                        .contains("name is required");
                assertThat(client.post("/pgworker/signal", "{'name': 'go', 'payload': '{'}")
                                .body())
                        .contains("payload must be JSON");
                assertThat(client.post("/pgworker/signal", "{'name': 'a#b'}").statusCode())
                        .isEqualTo(400);
                assertThat(db.sql("select payload from {schema}.pgworker_signals where name = 'go'")
                                .query(String.class)
                                .list())
                        .contains("1.70");

                long id = client.context
                        .getBean(JobScheduler.class)
                        .addJob("order", null)
                        .id();
                db.sql(
                                "insert into {schema}.pgworker_steps"
                                        + " (job_id, revision, name, kind, claim, attempt, started_at, ended_at, result_type, result)"
                                        + " values (?, 0, 'charge', 'run', now(), 1, now(), now(), 'Charge', '{\"card\": 4711}')")
                        .param(id)
                        .update();
                JsonNode step = client.json(client.get("/pgworker/jobs/" + id))
                        .path("steps")
                        .get(0);
                assertThat(step.path("name").asString()).isEqualTo("charge");
                assertThat(step.toString().contains("4711")).isEqualTo(shown);
            }
        }
    }

    @Test
    void showsTriggersPausesAndDeletesSchedules() throws Exception {
        try (Client client = new Client("pgworker.enabled=false")) {
            Recurrence daily = Recurrence.cron("0 30 4 * * *", ZoneId.of("Europe/Berlin"));
            RecurringJobs schedules = client.context.getBean(RecurringJobs.class);
            schedules.put(Schedule.builder("report/a", daily, "report", Map.of("secret", 1))
                    .backfill(Duration.ofDays(2))
                    .build());
            schedules.put(Schedule.builder("b", daily, "other", null).build());

            assertThat(names(client, "")).containsExactly("b", "report/a");
            assertThat(names(client, "?prefix=report/")).containsExactly("report/a");
            assertThat(names(client, "?task=other")).containsExactly("b");
            assertThat(names(client, "?limit=1")).containsExactly("b");
            assertThat(client.json(client.get("/pgworker/recurring?limit=1"))
                            .path("next")
                            .asString())
                    .isEqualTo("b");
            assertThat(names(client, "?after=b")).containsExactly("report/a");

            JsonNode b = client.json(client.get("/pgworker/recurring/b?runs=3"));
            assertThat(b.path("kind").asString()).isEqualTo("cron");
            assertThat(b.path("expression").asString()).isEqualTo("0 30 4 * * *");
            assertThat(b.path("zone").asString()).isEqualTo("Europe/Berlin");
            assertThat(b.path("origin").asString()).isEqualTo("database");
            schedules.put(
                    Schedule.builder("rate", Recurrence.fixedRate(Duration.ofHours(1), Instant.EPOCH), "other", null)
                            .build());
            JsonNode rate = client.json(client.get("/pgworker/recurring/rate"));
            assertThat(rate.path("origin").asString()).isEqualTo("database");
            assertThat(rate.path("rateOrigin").asString()).endsWith("Z");
            assertThat(schedules.delete("rate")).isTrue();
            List<Instant> runs = b.path("nextRuns")
                    .valueStream()
                    .map(run -> Instant.parse(run.asString()))
                    .toList();
            assertThat(runs).hasSize(3).isSorted();
            assertThat(runs.get(0)).isEqualTo(b.path("nextRun").asString());
            assertThat(client.json(client.get("/pgworker/recurring?name=report/a&runs=2"))
                            .path("nextRuns")
                            .size())
                    .isEqualTo(2);
            assertThat(client.get("/pgworker/recurring?name=report").statusCode())
                    .isEqualTo(404);
            assertThat(client.get("/pgworker/recurring").body())
                    .contains("\"overlap\":\"skip\"", "\"backfill\":\"PT48H\"")
                    .doesNotContain("secret");

            assertThat(changed(client, "recurring-pause", "{'name': 'b'}")).isTrue();
            assertThat(changed(client, "recurring-pause", "{'name': 'b'}")).isFalse();
            assertThat(names(client, "?paused=true")).containsExactly("b");
            assertThat(names(client, "?paused=false")).containsExactly("report/a");
            assertThat(names(client, "?problem=true")).isEmpty();
            assertThat(client.json(client.get("/pgworker/recurring/b"))
                            .path("nextRuns")
                            .size())
                    .isEqualTo(5);
            assertThat(changed(client, "recurring-resume", "{'name': 'b'}")).isTrue();

            long job = client.json(client.post(
                            "/pgworker/recurring-trigger",
                            "{'name': 'report/a', 'payload': '{\\\"only\\\": 2, \\\"exact\\\": 1.10}'}"))
                    .path("job")
                    .asLong();
            assertThat(client.context
                            .getBean(JobQueries.class)
                            .find(job)
                            .orElseThrow()
                            .payload())
                    .contains("\"only\":2", "\"exact\":1.10", "\"schedule\":\"report/a\"");
            assertThat(changed(client, "recurring-delete", "{'name': 'b'}")).isTrue();
            assertThat(client.get("/pgworker/recurring/b").statusCode()).isEqualTo(404);
            assertThat(changed(client, "recurring-delete", "{'name': 'b'}")).isFalse();
            HttpResponse<String> unknown = client.post("/pgworker/recurring-trigger", "{'name': 'b'}");
            assertThat(unknown.statusCode()).isEqualTo(400);
            assertThat(unknown.body()).contains("but there is none");
        }
    }

    private static List<String> names(Client client, String query) throws Exception {
        return client.json(client.get("/pgworker/recurring" + query))
                .path("recurring")
                .valueStream()
                .map(job -> job.path("id").asString())
                .toList();
    }

    private static boolean changed(Client client, String action, String body) throws Exception {
        return client.json(client.post("/pgworker/" + action, body))
                .path("changed")
                .asBoolean();
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '~', textBlock = """
                    GET | recurring?limit=0 | | limit must be between 1 and 1000
                    GET | recurring?origin=mars | | origin must be one of
                    GET | recurring?paused=perhaps | | paused must be true or false
                    GET | recurring/x?runs=1001 | | runs must be between 0 and 1000
                    POST | recurring-pause | {} | name is required
                    POST | recurring-trigger | {'name': 'none', 'payload': '[1]'} | payload must be a JSON object
                    POST | recurring-trigger | {'name': 'none', 'payload': '{'} | payload must be a JSON object:
                    POST | recurring-delete | {'name': '\\u0000'} | must not contain the NUL character
                    GET | jobs?state=broken | | state must be one of [READY
                    GET | jobs?limit=0 | | limit must be between 1 and 1000
                    GET | jobs?limit=many | | limit must be an integer
                    GET | jobs?after=x | | after must be a job id
                    GET | history?search=secret | | pgworker.endpoint.show-payloads
                    GET | history?outcome=lost | | outcome must be one of [SUCCEEDED
                    GET | history/x | | id must be a job id
                    GET | jobs?sort=random | | sort must be one of [NEWEST
                    GET | jobs?scanLimit=0 | | scanLimit must be between 1 and 1000000
                    GET | jobs?from=today | | from must be an instant such as
                    GET | running?limit=0 | | limit must be between 1 and 1000
                    GET | tasks?limit=0 | | limit must be between 1 and 1000
                    GET | statistics?points=0 | | points must be between
                    GET | statistics?window=soon | | window must be a duration
                    GET | jobs/x | | id must be a job id
                    GET | jobs?task=%00 | | taskIdentifier must not contain the NUL character
                    GET | queues?after=%00 | | after must not contain the NUL character
                    GET | queues?limit=1001 | | limit must be between 1 and 1000
                    POST | complete | {} | ids is required
                    POST | complete | {'ids': '1,'} | ids is required
                    POST | complete | {'ids': 'x'} | ids must be a job id
                    POST | fail | {'ids': 1} | reason is required
                    POST | reschedule | {'ids': 1} | One of runAt, priority, attempts and maxAttempts must be set
                    POST | reschedule | {'ids': 1, 'runAt': 'tomorrow'} | runAt must be an instant
                    POST | reschedule | {'ids': 1, 'runAt': 'PT9223372036854775807S'} | runAt must be an instant
                    POST | reschedule | {'ids': 1, 'runAt': 'PT99999999999999S'} | runAt must
                    POST | reschedule | {'ids': 1, 'priority': 99999} | priority must be between
                    POST | reschedule | {'ids': 1, 'maxAttempts': 0} | maxAttempts must be between
                    POST | run-now | {} | ids is required
                    POST | remove | {} | ids is required, or one of the filters state, task, queue, key,
                    POST | remove | {'task': ' '} | ids is required, or one of the filters
                    POST | complete | {'ids': 1, 'task': 'mail'} | ids cannot be combined with filters, limit or dryRun
                    POST | complete | {'ids': 1, 'dryRun': true} | ids cannot be combined
                    POST | complete | {'task': 'mail', 'limit': 0} | limit must be between 1 and 1000000
                    POST | complete | {'state': 'broken'} | state must be one of
                    POST | cleanup | {'tasks': 'everything'} | tasks must be one of
                    POST | force-unlock | {} | workers is required
                    POST | force-unlock | {'workers': '\\u0000'} | workerIds must not contain the NUL character
                    POST | remove | {'key': '\\u0000'} | jobKey must not contain the NUL character
                    POST | fail | {'ids': 1, 'reason': '\\u0000'} | reason must not contain the NUL character
                    POST | recurring-pause | {'name': '\\u0000'} | id must not contain the NUL character
                    POST | sweep | {'threshold': 'PT9223372036854775807S'} | threshold must be between
                    POST | sweep | {'threshold': 'soon'} | threshold must be a duration
                    POST | sweep | {'threshold': 'PT0S'} | threshold must be positive
                    POST | sweep | {'dryRun': 'perhaps'} | dryRun must be true or false
                    POST | recurring-trigger | {} | name is required
                    POST | recurring-pause | {} | name is required
                    POST | recurring-delete | {} | name is required
                    """)
    void refusesWhatIsWrong(String method, String path, String body, String message) throws Exception {
        HttpResponse<String> response =
                method.equals("GET") ? shared().get("/pgworker/" + path) : shared().post("/pgworker/" + path, body);

        assertThat(response.statusCode()).isEqualTo(400);
        assertThat(new JsonMapper().readTree(response.body()).path("error").asString())
                .contains(message);
    }

    private static Client shared;

    private Client shared() {
        if (shared == null) {
            shared = new Client("pgworker.enabled=false");
        }
        return shared;
    }

    @org.junit.jupiter.api.AfterAll
    static void closeShared() {
        if (shared != null) {
            shared.close();
        }
    }

    @Test
    void mayBeReadOnly() throws Exception {
        try (Client client = new Client("management.endpoint.pgworker.access=read-only")) {
            assertThat(client.get("/pgworker").statusCode()).isEqualTo(200);
            assertThat(client.post("/pgworker/complete", "{'ids': 1}").statusCode())
                    .isGreaterThanOrEqualTo(400);
            assertThat(client.get("/health").statusCode()).isEqualTo(200);
            assertThat(client.get("/prometheus").body()).contains("pgworker_backlog");
        }
    }

    @Test
    void isThereOnlyWhereItIsExposed() {
        db.runner()
                .withConfiguration(AutoConfigurations.of(WorkerEndpointAutoConfiguration.class))
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(WorkerEndpoint.class));
        db.runner()
                .withConfiguration(AutoConfigurations.of(WorkerEndpointAutoConfiguration.class))
                .withPropertyValues("management.endpoints.web.exposure.include=*")
                .run(context -> assertThat(context).hasSingleBean(WorkerEndpoint.class));
        db.runner()
                .withConfiguration(AutoConfigurations.of(WorkerEndpointAutoConfiguration.class))
                .withClassLoader(new FilteredClassLoader("org.springframework.boot.actuate"))
                .withPropertyValues("management.endpoints.web.exposure.include=*")
                .run(context -> assertThat(context).hasNotFailed().hasSingleBean(Worker.class));
    }

    @Test
    void aParameterNamesOneOfSeveralWorkers() throws Exception {
        try (Client client = new Client(
                "pgworker.instances.reports.schema.name=" + db.schema() + "_app",
                "pgworker.instances.reports.tasks=hello",
                "pgworker.auto-startup=false")) {
            client.context.getBean("reportsJobScheduler", JobScheduler.class).addJob("hello");
            JobScheduler jobs = client.context.getBean(JobScheduler.class);
            jobs.addJob("other");
            jobs.addJob("other");

            JsonNode overview = client.json(client.get("/pgworker?instance=reports"));
            assertThat(overview.path("instance").asString()).isEqualTo("reports");
            assertThat(overview.path("instances").toString()).isEqualTo("[\"default\",\"reports\"]");
            assertThat(overview.path("tasks").toString()).isEqualTo("[\"hello\"]");
            JsonNode listed =
                    client.json(client.get("/pgworker/jobs?instance=reports")).path("jobs");
            assertThat(listed).hasSize(1);
            String id = listed.path(0).path("id").asString();
            assertThat(client.json(client.get("/pgworker/jobs/" + id + "?instance=reports"))
                            .path("task")
                            .asString())
                    .isEqualTo("hello");
            assertThat(client.json(client.get("/pgworker/jobs")).path("jobs")).hasSize(2);
            assertThat(client.json(client.post("/pgworker/complete", "{'ids': '" + id + "', 'instance': 'reports'}"))
                            .path("changed"))
                    .hasSize(1);
            assertThat(client.json(client.get("/pgworker/jobs?instance=reports"))
                            .path("jobs"))
                    .isEmpty();
            assertThat(client.get("/pgworker?instance=none").statusCode()).isEqualTo(400);
            assertThat(client.get("/pgworker?instance=none").body())
                    .contains("instance must be one of [default, reports]");
        }
    }
}
