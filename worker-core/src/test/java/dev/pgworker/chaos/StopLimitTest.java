package dev.pgworker.chaos;

import java.net.URI;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.util.Collections;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.Worker;
import dev.pgworker.WorkerSettings;
import dev.pgworker.event.WorkerEvent.JobStarted;
import dev.pgworker.event.WorkerEvent.WorkerStopping;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.Task;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** A stop takes no longer than configuration says, whatever hangs. */
@Tag("thorough")
@Tag("any-postgres")
class StopLimitTest {

    private static final Task<Integer> STUCK = Task.of("stuck", Integer.class);
    private static final Task<Integer> FAST = Task.of("fast", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final CountDownLatch end = new CountDownLatch(1);
    private final CountDownLatch stopping = new CountDownLatch(1);

    @Test
    void aWorkerUnderLoadStopsInTimeWhateverHangs() throws Exception {
        URI server = URI.create(TestPostgres.jdbcUrl().substring("jdbc:".length()));
        RecordingListener events = new RecordingListener();
        try (FlakyProxy proxy = new FlakyProxy(server.getPort());
                HikariDataSource pool = new HikariDataSource(TestSchema.poolConfig(throughProxy(server, proxy), 10))) {
            WorkerSettings settings = settings();
            Worker worker = Worker.builder(pool)
                    .schema(db.schema())
                    .settings(settings)
                    .task(STUCK, (n, context) -> awaitInSpiteOfInterrupts(end))
                    .task(FAST, (n, context) -> {})
                    .listener(events)
                    .listener(event -> {
                        if (event instanceof WorkerStopping) {
                            stopping.countDown();
                            awaitInSpiteOfInterrupts(end);
                        }
                    })
                    .build();
            worker.start();
            db.scheduler().addJobs(Collections.nCopies(2, JobRequest.of(STUCK, 1)));
            events.await(JobStarted.class, 2);
            db.scheduler().addJobs(Collections.nCopies(20_000, JobRequest.of(FAST, 1)));
            Awaitility.await().until(() -> events.all(JobStarted.class).size() > 500);

            proxy.set(FlakyProxy.Mode.HOLD);
            assertThat(db.jobs())
                    .as("jobs still to be run when the connections died")
                    .isGreaterThan(100);
            long begin = System.nanoTime();
            worker.stop();
            Duration took = Duration.ofNanos(System.nanoTime() - begin);

            System.out.println("Stopped after " + took.toMillis() + " ms of at most "
                    + settings.stopLimit().toMillis());
            assertThat(stopping.getCount()).as("listeners that were not told").isZero();
            assertThat(took).isLessThan(settings.stopLimit());
            assertThat(worker.isRunning()).isFalse();
        } finally {
            end.countDown();
        }
    }

    @Test
    void aStopThatCannotWriteAnOutcomeLeavesTheRegistration() throws Exception {
        RecordingListener events = new RecordingListener();
        Worker worker = db.start(db.worker()
                .settings(settings())
                .task(FAST, (n, context) -> end.await())
                .listener(events));
        Job job = db.scheduler().addJob(FAST, 1);
        events.await(JobStarted.class);
        String id = worker.id();
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(db.schema().in("select from {schema}._private_jobs for update"));
            end.countDown();

            worker.stop();

            connection.rollback();
        }
        assertThat(db.sql("select id from {schema}._private_workers")
                        .query(String.class)
                        .list())
                .containsExactly(id);
        assertThat(db.sql("select locked_by from {schema}.jobs where id = ?")
                        .param(job.id())
                        .query(String.class)
                        .single())
                .isEqualTo(id);
    }

    @Test
    void aWorkerThatNothingHindersStopsAtOnce() throws Exception {
        RecordingListener events = new RecordingListener();
        Worker worker = db.start(
                db.worker().settings(settings()).task(FAST, (n, context) -> {}).listener(events));
        db.scheduler().addJobs(Collections.nCopies(1_000, JobRequest.of(FAST, 1)));
        events.await(JobStarted.class, 100);

        long begin = System.nanoTime();
        worker.stop();

        // The shortest of the limits that a stop has by default is 25 s: none of them was needed.
        assertThat(Duration.ofNanos(System.nanoTime() - begin))
                .isLessThan(settings().stopLimit());
    }

    private static WorkerSettings settings() {
        return WorkerSettings.builder()
                .concurrency(4)
                .shutdownGracePeriod(Duration.ofSeconds(1))
                .recovery(RecoverySettings.builder()
                        .enabled(true)
                        .heartbeatInterval(Duration.ofMillis(100))
                        .sweepInterval(Duration.ofMillis(100))
                        .build())
                .build();
    }

    /** Without a time limit of its own, so that a connection that hangs does so for good. */
    private static String throughProxy(URI server, FlakyProxy proxy) {
        return "jdbc:postgresql://localhost:" + proxy.port() + server.getPath()
                + (server.getQuery() == null ? "" : "?" + server.getQuery());
    }

    private static void awaitInSpiteOfInterrupts(CountDownLatch latch) {
        boolean over = false;
        while (!over) {
            try {
                over = latch.await(120, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                // This is what is tested.
            }
        }
    }
}
