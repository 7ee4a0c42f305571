package dev.pgworker.samples.recovery;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;

import dev.pgworker.Worker;
import dev.pgworker.event.WorkerEvent;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobRecovered;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** Its own worker starts when that of another process has been killed in the middle of a job. */
@SpringBootTest(
        webEnvironment = WebEnvironment.NONE,
        properties = {"pgworker.auto-startup=false", "import.time-per-page=10ms"})
@Import(RecoveryTest.Recording.class)
@DirtiesContext
class RecoveryTest {

    private static final String DATABASE = TestPostgres.newDatabase("recovery");

    /** Starts at the same time as this application. */
    private static final Process OTHER = startOther();

    @Autowired
    Worker worker;

    @Autowired
    JdbcClient jdbc;

    @Autowired
    BlockingQueue<WorkerEvent> events;

    @DynamicPropertySource
    static void database(DynamicPropertyRegistry registry) {
        registry.add("spring.datasource.url", () -> DATABASE);
    }

    @TestConfiguration(proxyBeanMethods = false)
    static class Recording {

        @Bean
        BlockingQueue<WorkerEvent> events() {
            return new LinkedBlockingQueue<>();
        }

        @Bean
        WorkerEventListener recorder(BlockingQueue<WorkerEvent> events) {
            return events::add;
        }
    }

    private static Process startOther() {
        ProcessBuilder builder = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:TieredStopAtLevel=1",
                        "-cp",
                        System.getProperty("java.class.path"),
                        RecoveryApplication.class.getName(),
                        "--add",
                        "--import.time-per-page=500ms",
                        "--pgworker.recovery.sweep-threshold=1s")
                .redirectErrorStream(true);
        builder.environment().put("SPRING_DATASOURCE_URL", DATABASE);
        try {
            return builder.start();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @AfterAll
    static void endOther() {
        OTHER.destroyForcibly();
    }

    @Test
    void aKilledWorkersJobGoesOnWhereItStopped() throws Exception {
        awaitOutput("Imported page 2 of 10");
        OTHER.destroyForcibly().waitFor();
        List<Integer> before = pagesOf(OTHER.pid());

        worker.start();

        await(JobRecovered.class);
        await(JobCompleted.class);
        // The line about a page comes before its commit.
        assertThat(before).startsWith(1).doesNotContain(10);
        List<Integer> after = pagesOf(ProcessHandle.current().pid());
        assertThat(Stream.of(before, after).flatMap(List::stream)).containsExactly(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    }

    private static void awaitOutput(String text) throws IOException {
        BufferedReader output = OTHER.inputReader();
        String line;
        do {
            line = output.readLine();
            assertThat(line).as("output of the other process, up to '%s'", text).isNotNull();
        } while (!line.contains(text));
    }

    private void await(Class<? extends WorkerEvent> type) throws InterruptedException {
        WorkerEvent event;
        do {
            event = events.poll(120, TimeUnit.SECONDS);
            assertThat(event).as(type.getSimpleName()).isNotNull();
        } while (!type.isInstance(event));
    }

    private List<Integer> pagesOf(long process) {
        return jdbc.sql("select page from imported_page where process = ? order by page")
                .param(process)
                .query(Integer.class)
                .list();
    }
}
