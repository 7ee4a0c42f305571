package dev.pgworker.samples.sqlandnode;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;

import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.core.io.FileSystemResource;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.init.ResourceDatabasePopulator;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.OfJob;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.Job;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

@SpringBootTest(webEnvironment = WebEnvironment.NONE)
@Import(SqlAndNodeTest.Recording.class)
@DirtiesContext
class SqlAndNodeTest {

    private static final String DATABASE = TestPostgres.newDatabase("sqlandnode");

    @Autowired
    DataSource dataSource;

    @Autowired
    JdbcClient jdbc;

    @Autowired
    TransactionTemplate transactions;

    @Autowired
    BlockingQueue<OfJob> ended;

    @DynamicPropertySource
    static void database(DynamicPropertyRegistry registry) {
        registry.add("spring.datasource.url", () -> DATABASE);
    }

    @TestConfiguration(proxyBeanMethods = false)
    static class Recording {

        @Bean
        BlockingQueue<OfJob> ended() {
            return new LinkedBlockingQueue<>();
        }

        @Bean
        WorkerEventListener recorder(BlockingQueue<OfJob> ended) {
            return event -> {
                if (event instanceof JobCompleted || event instanceof JobFailed) {
                    ended.add((OfJob) event);
                }
            };
        }
    }

    @Test
    void whatTheSqlFileAddsRuns() throws Exception {
        enqueueWithSql();

        List<Job> jobs = completed(5);
        assertThat(jobs).extracting(Job::payload).anyMatch(payload -> payload.contains("one.png"));
        assertThat(jobs).extracting(Job::key).contains("thumbnail:two.png");
        assertThat(albumOf(jobs)).hasSize(3).isSorted();
    }

    @Test
    void theJobWithAKeyIsReplacedWhenTheSqlFileRunsAgain() {
        transactions.executeWithoutResult(transaction -> {
            enqueueWithSql();
            enqueueWithSql();

            assertThat(jobs()).isEqualTo(9);
            transaction.setRollbackOnly();
        });
    }

    /** Takes part when {@code npm install} has been run. */
    @Test
    void whatNodeAddsRuns() throws Exception {
        Assumptions.assumeTrue(
                Files.exists(Path.of("node_modules/graphile-worker")), "npm install has not been run in this folder");
        ProcessBuilder node = new ProcessBuilder("node", "enqueue.js")
                .redirectErrorStream(true)
                .redirectOutput(Path.of("target", "node.log").toFile());
        node.environment().put("DATABASE_URL", DATABASE.replace("jdbc:", ""));

        assertThat(node.start().waitFor()).isZero();

        List<Job> jobs = completed(4);
        assertThat(jobs).extracting(Job::key).contains("thumbnail:node.png");
        assertThat(albumOf(jobs)).hasSize(3).isSorted();
    }

    private void enqueueWithSql() {
        new ResourceDatabasePopulator(new FileSystemResource("enqueue.sql")).execute(dataSource);
    }

    private List<Job> completed(int count) throws InterruptedException {
        List<Job> jobs = new ArrayList<>();
        while (jobs.size() < count) {
            OfJob event = ended.poll(120, TimeUnit.SECONDS);
            assertThat(event).as("job %s of %s", jobs.size() + 1, count).isInstanceOf(JobCompleted.class);
            jobs.add(event.job());
        }
        return jobs;
    }

    private static List<String> albumOf(List<Job> jobs) {
        return jobs.stream()
                .filter(job -> "album".equals(job.queueName()))
                .map(Job::payload)
                .toList();
    }

    /** Counts those that the transaction has added. */
    private int jobs() {
        return jdbc.sql("select count(*) from graphile_worker.jobs where created_at = now()")
                .query(Integer.class)
                .single();
    }
}
