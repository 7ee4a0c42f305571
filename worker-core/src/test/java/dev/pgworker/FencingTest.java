package dev.pgworker;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

import com.zaxxer.hikari.HikariDataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.jdbc.core.simple.JdbcClient;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobLost;
import dev.pgworker.event.WorkerEvent.JobReturned;
import dev.pgworker.event.WorkerEvent.WorkerLost;
import dev.pgworker.event.WorkerEvent.WorkerReplaced;
import dev.pgworker.event.WorkerEvent.WorkerStarted;
import dev.pgworker.event.WorkerEvent.WorkerStopped;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.SweepOptions;
import dev.pgworker.job.Task;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.TaskHandler;
import dev.pgworker.testing.OwnDatabase;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** A worker that cannot prove its life, or was declared dead, starts over. Each test has a database that it may close. */
@Tag("any-postgres")
class FencingTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    private final OwnDatabase database = new OwnDatabase();
    private final RecordingListener events = new RecordingListener();
    private HikariDataSource pool;
    private Worker worker;

    @BeforeEach
    void createDatabase() {
        database.create();
        pool = new HikariDataSource(TestSchema.poolConfig(database.url(), 6));
        new SchemaMigrator(pool, WorkerSchema.DEFAULT).migrate();
    }

    @AfterEach
    void dropDatabase() {
        if (worker != null) {
            worker.stop();
        }
        pool.close();
        database.drop();
    }

    @Test
    @Tag("thorough")
    void anOutageBeyondTheThresholdInterruptsHandlersAndStartsOver() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch interrupted = new CountDownLatch(1);
        AtomicReference<JobContext> context = new AtomicReference<>();
        start(Duration.ofSeconds(5), 1, (n, c) -> {
            if (context.compareAndSet(null, c)) {
                started.countDown();
                try {
                    new CountDownLatch(1).await();
                } finally {
                    interrupted.countDown();
                }
            }
        });
        Job job = scheduler().addJob(WORK, 1);
        started.await();
        assertThat(context.get().isOwned()).isTrue();
        String lost = worker.id();

        database.forbidConnections();
        database.cut();

        assertThat(interrupted.await(120, TimeUnit.SECONDS)).isTrue();
        assertThat(context.get().isOwned()).isFalse();
        assertThat(context.get().isInterrupted()).isTrue();
        assertThat(events.await(WorkerLost.class).workerId()).isEqualTo(lost);
        assertThat(events.all(WorkerReplaced.class))
                .as("while the database is away")
                .isEmpty();
        database.allowConnections();

        WorkerReplaced replaced = events.await(WorkerReplaced.class);
        assertThat(replaced.lostWorkerId()).isEqualTo(lost);
        assertThat(worker.id()).isEqualTo(replaced.workerId()).isNotEqualTo(lost);
        // Nobody has swept it, so it could give its job back.
        assertThat(events.await(JobReturned.class).job().id()).isEqualTo(job.id());
        assertThat(events.await(JobCompleted.class).workerId()).isEqualTo(replaced.workerId());
        assertThat(sql("select id from graphile_worker._private_workers")
                        .query(String.class)
                        .list())
                .containsExactly(replaced.workerId());
    }

    @Test
    @Tag("thorough")
    void aWorkerThatWasDeclaredDeadNoticesAtItsNextHeartbeatAndChangesNothing() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        List<Integer> attempts = new CopyOnWriteArrayList<>();
        AtomicReference<JobContext> context = new AtomicReference<>();
        start(Duration.ofMinutes(5), 1, (n, c) -> {
            if (attempts.isEmpty()) {
                attempts.add(c.attempt());
                context.set(c);
                started.countDown();
                new CountDownLatch(1).await();
            }
            attempts.add(c.attempt());
        });
        Job job = scheduler().addJob(WORK, 1, JobSpec.builder().queueName("q").build());
        started.await();
        String lost = worker.id();

        assertThat(WorkerClient.workerOperations(pool, WorkerSchema.DEFAULT)
                        .sweep(new SweepOptions(Duration.ofNanos(1), Duration.ZERO, false))
                        .recoveredJobs())
                .isEqualTo(1);

        assertThat(events.await(WorkerLost.class).workerId()).isEqualTo(lost);
        assertThat(context.get().isOwned()).isFalse();
        assertThat(events.await(JobLost.class).workerId()).isEqualTo(lost);
        JobCompleted completed = events.await(JobCompleted.class);
        assertThat(completed.job().id()).isEqualTo(job.id());
        assertThat(completed.workerId()).isEqualTo(worker.id()).isNotEqualTo(lost);
        assertThat(attempts).containsExactly(1, 1);
    }

    @Test
    void theTokenOfALaterRunIsGreaterThoughTheAttemptIsTheSame() throws Exception {
        List<String> tokens = new CopyOnWriteArrayList<>();
        CountDownLatch started = new CountDownLatch(1);
        start(Duration.ofMinutes(5), 1, (n, c) -> {
            tokens.add(c.fencingToken());
            if (tokens.size() == 1) {
                started.countDown();
                new CountDownLatch(1).await();
            }
        });
        Job job = scheduler().addJob(WORK, 1);
        started.await();

        WorkerClient.workerOperations(pool, WorkerSchema.DEFAULT)
                .sweep(new SweepOptions(Duration.ofNanos(1), Duration.ZERO, false));
        events.await(JobCompleted.class);

        assertThat(tokens).hasSize(2).allSatisfy(t -> assertThat(t).startsWith(job.id() + "-1-"));
        assertThat(tokens.get(1)).isGreaterThan(tokens.get(0));
    }

    @Test
    @Tag("thorough")
    void aWorkerThatRunsAResilientJobGivesItUpAtTheLongerThreshold() throws Exception {
        Duration threshold = Duration.ofSeconds(5);
        CountDownLatch started = new CountDownLatch(1);
        AtomicLong interruptedAt = new AtomicLong();
        CountDownLatch interrupted = new CountDownLatch(1);
        start(threshold, 1, (n, c) -> {
            started.countDown();
            try {
                new CountDownLatch(1).await();
            } finally {
                interruptedAt.set(System.nanoTime());
                interrupted.countDown();
            }
        });
        scheduler()
                .addJob(
                        WORK,
                        1,
                        JobSpec.builder().flags("infrastructure_resilient").build());
        started.await();

        database.forbidConnections();
        long begin = System.nanoTime();
        database.cut();

        assertThat(interrupted.await(120, TimeUnit.SECONDS)).isTrue();
        // It is three times as long, from a heartbeat on that may have been late.
        assertThat(Duration.ofNanos(interruptedAt.get() - begin)).isGreaterThan(threshold.multipliedBy(2));
        database.allowConnections();
        events.await(WorkerReplaced.class);
    }

    @Test
    @Tag("thorough")
    void aStopWhileTheDatabaseIsAwayEndsTheRestartToo() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        start(Duration.ofSeconds(5), 1, (n, c) -> {
            started.countDown();
            new CountDownLatch(1).await();
        });
        scheduler().addJob(WORK, 1);
        started.await();
        database.forbidConnections();
        database.cut();
        events.await(WorkerLost.class);

        worker.stop();

        assertThat(worker.isRunning()).isFalse();
        database.allowConnections();
        assertThat(events.all(WorkerReplaced.class)).isEmpty();
        assertThat(events.all(WorkerStopped.class)).hasSize(1);
    }

    private void start(Duration threshold, int concurrency, TaskHandler<Integer> handler) {
        worker = Worker.builder(pool)
                .settings(WorkerSettings.builder()
                        .concurrency(concurrency)
                        .interruptedJobRetryDelay(Duration.ZERO)
                        .recovery(RecoverySettings.builder()
                                .heartbeatInterval(Duration.ofMillis(200))
                                .sweepThreshold(threshold)
                                .build())
                        .build())
                .task(WORK, handler)
                .listener(events)
                .build();
        worker.start();
        events.await(WorkerStarted.class);
    }

    private JobScheduler scheduler() {
        return WorkerClient.jobScheduler(pool, WorkerSchema.DEFAULT, new PayloadCodec(new JsonMapper()));
    }

    private JdbcClient.StatementSpec sql(String text) {
        return JdbcClient.create(pool).sql(text);
    }
}
