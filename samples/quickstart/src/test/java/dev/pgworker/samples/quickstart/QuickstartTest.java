package dev.pgworker.samples.quickstart;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.dao.DataIntegrityViolationException;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.Job;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
@Import(QuickstartTest.Recording.class)
@DirtiesContext
class QuickstartTest {

    private static final String SCHEMA = "quickstart_" + ProcessHandle.current().pid();

    @LocalServerPort
    int port;

    @Autowired
    JdbcClient jdbc;

    @Autowired
    GreetingService greetings;

    @Autowired
    TransactionTemplate transactions;

    @Autowired
    BlockingQueue<Job> completed;

    @DynamicPropertySource
    static void database(DynamicPropertyRegistry registry) {
        registry.add("spring.datasource.url", TestPostgres::jdbcUrl);
        registry.add("spring.datasource.hikari.schema", () -> SCHEMA);
        registry.add("spring.flyway.default-schema", () -> SCHEMA);
        registry.add("pgworker.schema.name", () -> SCHEMA + "_worker");
    }

    @TestConfiguration(proxyBeanMethods = false)
    static class Recording {

        @Bean
        BlockingQueue<Job> completed() {
            return new LinkedBlockingQueue<>();
        }

        @Bean
        WorkerEventListener recorder(BlockingQueue<Job> completed) {
            return event -> {
                if (event instanceof JobCompleted done) {
                    completed.add(done.job());
                }
            };
        }
    }

    @AfterAll
    static void dropSchemas(@Autowired JdbcClient jdbc) {
        jdbc.sql("drop schema " + SCHEMA + " cascade").update();
    }

    @Test
    void aPostedGreetingIsStoredAndItsJobRuns() throws Exception {
        assertThat(post("{\"name\":\"Ada\"}")).isEqualTo(202);

        assertThat(nextCompleted().payload()).contains("Ada");
        assertThat(stored("Ada")).isEqualTo(1);
    }

    @Test
    void aJobAddedWithSqlRuns() throws Exception {
        jdbc.sql("select %s_worker.add_job('hello', json_build_object('name', 'Bobby Tables'))".formatted(SCHEMA))
                .query()
                .singleRow();

        assertThat(nextCompleted().payload()).contains("Bobby Tables");
    }

    @Test
    void aRollbackLeavesNeitherGreetingNorJob() {
        transactions.executeWithoutResult(transaction -> {
            greetings.add(new Greeting("Nobody"));
            transaction.setRollbackOnly();
        });

        assertThat(stored("Nobody")).isZero();
        assertThat(jobs()).isZero();
    }

    @Test
    void aGreetingThatCannotBeStoredLeavesNoJob() {
        assertThatThrownBy(() -> greetings.add(new Greeting(null))).isInstanceOf(DataIntegrityViolationException.class);

        assertThat(jobs()).isZero();
    }

    @Test
    void aMissingOrBlankNameIsABadRequest() throws Exception {
        assertThat(post("{}")).isEqualTo(400);
        assertThat(post("{\"name\":\" \"}")).isEqualTo(400);
    }

    @Test
    void aNameThatCannotBeStoredIsABadRequest() throws Exception {
        assertThat(post("{\"name\":\"a\\u0000b\"}")).isEqualTo(400);
        assertThat(post("{\"name\":\"\\ud800\"}")).isEqualTo(400);
        assertThat(post("{\"name\":\"" + "x".repeat(201) + "\"}")).isEqualTo(400);
        assertThat(post("{\"name\":\"\\ud83d\\ude00\"}")).isEqualTo(202);
        assertThat(nextCompleted().payload()).contains("\ud83d\ude00");
    }

    private int post(String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://localhost:" + port + "/greetings"))
                .header("Content-Type", "application/json")
                .POST(BodyPublishers.ofString(body))
                .build();
        return HttpClient.newHttpClient()
                .send(request, BodyHandlers.discarding())
                .statusCode();
    }

    private Job nextCompleted() throws InterruptedException {
        Job job = completed.poll(120, TimeUnit.SECONDS);
        assertThat(job).as("a completed job").isNotNull();
        return job;
    }

    private int stored(String name) {
        return jdbc.sql("select count(*) from greeting where name = ?")
                .param(name)
                .query(Integer.class)
                .single();
    }

    private int jobs() {
        return jdbc.sql("select count(*) from %s_worker.jobs".formatted(SCHEMA))
                .query(Integer.class)
                .single();
    }
}
