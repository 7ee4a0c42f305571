package dev.pgworker;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

import dev.pgworker.event.WorkerEvent.FetchStarted;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobInterrupted;
import dev.pgworker.event.WorkerEvent.JobStarted;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.internal.engine.complete.StallDiagnosis;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.LogCapture;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** What a worker tells about itself when it is not well, and when its database is not. */
@Tag("thorough")
@Tag("any-postgres")
class WorkerFaultsTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);
    private static final Duration SHORT = Duration.ofMillis(500);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();
    private final CountDownLatch release = new CountDownLatch(1);

    @AfterEach
    void end() {
        release.countDown();
    }

    private Worker.Builder impatient() {
        return db.worker().patience(SHORT, SHORT).listener(events);
    }

    private void await() {
        try {
            release.await();
        } catch (InterruptedException e) {
            // Somebody tidies up.
        }
    }

    @Test
    void aWorkerWithNothingToDoIsWell() {
        Worker worker = db.start(impatient().task(WORK, (n, context) -> {}));

        Awaitility.await().until(() -> worker.status().sinceStart().compareTo(SHORT.multipliedBy(4)) > 0);
        // At any moment a busy machine may keep a thread from running for longer than that.
        Awaitility.await()
                .until(() -> worker.status().stall() == null
                        && worker.status().stuckThreads().isEmpty()
                        && worker.status().sinceAudit().compareTo(SHORT.multipliedBy(4)) < 0);
        assertThat(worker.status().deadThreads()).isEmpty();
    }

    @Test
    void jobsThatTheExecutorLoses() {
        Queue<Runnable> lost = new ConcurrentLinkedQueue<>();
        Worker worker = db.start(impatient().handlerExecutor(lost::add).task(WORK, (n, context) -> {}));
        Awaitility.await().until(() -> worker.status().stall() == null);
        db.scheduler().addJob(WORK, 1);

        Awaitility.await().until(() -> worker.status().stall() != null);
        assertThat(worker.status().stall()).contains("wait for the handler executor");
        assertThat(worker.status().deadThreads()).isEmpty();
        Awaitility.await().until(() -> worker.status().stuckThreads().isEmpty());

        Awaitility.await().until(() -> {
            Runnable task = lost.poll();
            if (task != null) {
                new Thread(task).start();
            }
            return worker.status().stall() == null;
        });
        events.await(JobCompleted.class);
    }

    @Test
    void aJobThatCannotBeClaimed() {
        long id = db.scheduler().addJob(WORK, 1).id();
        db.sql("""
                create function {schema}.keep() returns trigger language plpgsql as $$
                begin return null; end $$;
                create trigger keep before update on {schema}._private_jobs for each row execute function {schema}.keep()
                """).update();
        Worker worker = db.start(impatient().task(WORK, (n, context) -> {}));

        String refused = "job " + id + " of task \"work\" cannot be claimed: a trigger keeps a job from being claimed"
                + " (SQLSTATE 27000)";
        Awaitility.await().until(() -> refused.equals(worker.status().stall()));

        db.sql("drop trigger keep on {schema}._private_jobs").update();
        events.await(JobCompleted.class, 1);
        Awaitility.await().until(() -> worker.status().stall() == null);
    }

    /** Who holds rows is found by what the rows say; who locks a table by the table. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "select from {schema}._private_jobs for update",
                "update {schema}._private_jobs set priority = priority",
                "select from {schema}._private_job_queues for update",
                "lock table {schema}._private_jobs in share mode"
            })
    void whoHoldsTheRowsOfDueJobsIsNamed(String hold) throws SQLException {
        db.scheduler().addJob(WORK, 1, JobSpec.builder().queueName("q").build());
        Worker worker;
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute("set local application_name = 'psql'");
            statement.execute(db.schema().in(hold));
            String holder;
            try (ResultSet row = statement.executeQuery(
                    "select pg_backend_pid() || ' of ' || current_user || ' (psql, idle in transaction'")) {
                row.next();
                holder = row.getString(1);
            }
            try (LogCapture log = new LogCapture(StallDiagnosis.class)) {
                worker = db.start(impatient().task(WORK, (n, context) -> {}));
                Awaitility.await()
                        .until(() -> String.valueOf(worker.status().stall()).contains(holder));
                assertThat(log.messages())
                        .anySatisfy(message -> assertThat(message).contains(holder));
            }
            connection.rollback();
        }
        events.await(JobCompleted.class);
        Awaitility.await().until(() -> worker.status().stall() == null);
    }

    @Test
    void aPoolThatTheApplicationUsesUp() throws SQLException {
        try (HikariDataSource pool = TestSchema.pool(1)) {
            pool.setConnectionTimeout(SHORT.toMillis());
            Worker worker = db.start(Worker.builder(pool)
                    .schema(db.schema())
                    .patience(SHORT, SHORT)
                    .listener(events)
                    .privateDataSource(new DriverManagerDataSource(TestPostgres.jdbcUrl()))
                    .task(WORK, (n, context) -> {}));
            // Before it knows all that it has to, it needs the pool, too.
            db.scheduler().addJob(WORK, 0);
            events.await(JobCompleted.class);
            try (Connection last = pool.getConnection()) {
                assertThat(last.isValid(1)).isTrue();
                // One that is announced alone is claimed on the connection that listens.
                db.scheduler().addJobs(WORK, List.of(1, 2));

                Awaitility.await().until(() -> worker.status().stall() != null);
                assertThat(worker.status().stall()).contains("Connection is not available");
                Awaitility.await().until(() -> worker.status().stuckThreads().isEmpty());
            }
            events.await(JobCompleted.class, 3);
            Awaitility.await().until(() -> worker.status().stall() == null);
            worker.stop();
        }
    }

    @Test
    void outcomesThatCannotBeWritten() throws SQLException {
        Semaphore mayEnd = new Semaphore(0);
        Worker worker = db.start(impatient()
                .settings(WorkerSettings.builder()
                        .concurrency(1)
                        .localQueueSize(0)
                        .build())
                .task(WORK, (n, context) -> mayEnd.acquire()));
        try (Connection connection = db.dataSource().getConnection()) {
            connection.setAutoCommit(false);
            for (int i = 1; i <= 5; i++) {
                long id = db.scheduler().addJob(WORK, i).id();
                events.await(JobStarted.class, i);
                try (Statement statement = connection.createStatement()) {
                    statement.execute(
                            db.schema().in("select from {schema}._private_jobs where id = " + id + " for update"));
                }
                mayEnd.release();
            }
            db.scheduler().addJob(WORK, 6);
            Awaitility.await().until(() -> worker.status().stall() != null);
            assertThat(worker.status().stall()).contains("the outcomes of 5 are not written");
            Awaitility.await().until(() -> worker.status().stuckThreads().isEmpty());
            connection.rollback();
        }
        mayEnd.release();
        events.await(JobCompleted.class, 6);
        Awaitility.await().until(() -> worker.status().stall() == null);
    }

    @Test
    void aThreadInAListenerThatDoesNotReturn() {
        WorkerEventListener hangs = event -> {
            if (event instanceof FetchStarted) {
                await();
            }
        };
        Worker worker = db.start(impatient().directListener(hangs).task(WORK, (n, context) -> {}));

        Awaitility.await().until(() -> !worker.status().stuckThreads().isEmpty());
        assertThat(worker.status().stuckThreads()).containsExactly("worker-fetch");
        assertThat(worker.status().deadThreads()).isEmpty();
        release.countDown();
        Awaitility.await().until(() -> worker.status().stuckThreads().isEmpty());
    }

    @Test
    void theThreadOfTimeoutsInAListenerThatDoesNotReturn() {
        WorkerEventListener hangs = event -> {
            if (event instanceof JobInterrupted) {
                await();
            }
        };
        Worker worker = db.start(impatient()
                .directListener(hangs)
                .tasks(List.of(TaskRegistration.of(WORK, (n, context) -> await())
                        .with(TaskOptions.DEFAULT.withTimeout(Duration.ofMillis(50))))));
        db.scheduler().addJob(WORK, 1);

        Awaitility.await().until(() -> worker.status().stuckThreads().contains("worker-timeout"));
    }

    @Test
    void aLockOnTheTableOfJobs() throws SQLException {
        Worker worker = db.start(impatient().task(WORK, (n, context) -> {}));
        events.await(ListenerConnected.class);
        db.scheduler().addJob(WORK, 1);
        events.await(JobCompleted.class);
        try (Connection connection = db.dataSource().getConnection()) {
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement()) {
                statement.execute(db.schema().in("lock table {schema}._private_jobs in access exclusive mode"));
            }
            // The fetch that a poll makes, or the audit.
            Awaitility.await()
                    .until(() -> db.sql(
                                            "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
                                                    + " and pid <> pg_backend_pid() and state_change < now() - interval '1 second'")
                                    .query(Integer.class)
                                    .single()
                            > 0);
            Awaitility.await().until(() -> worker.status().stuckThreads().isEmpty());
            assertThat(worker.status().deadThreads()).isEmpty();
            connection.rollback();
        }
        db.scheduler().addJob(WORK, 2);
        events.await(JobCompleted.class, 2);
        Awaitility.await().until(() -> worker.status().stall() == null);
    }

    @Test
    void aDataSourceThatThrowsWhatItMayNot() {
        AtomicInteger thrown = new AtomicInteger();
        DelegatingDataSource hostile = new DelegatingDataSource(db.dataSource()) {
            @Override
            public Connection getConnection() throws SQLException {
                if (Thread.currentThread().getName().equals("worker-fetch") && thrown.getAndIncrement() == 0) {
                    WorkerFaultsTest.<RuntimeException>sneak(new Exception("nothing that a data source may throw"));
                }
                return super.getConnection();
            }
        };
        Worker worker = db.start(
                Worker.builder(hostile).schema(db.schema()).listener(events).task(WORK, (n, context) -> {}));
        db.scheduler().addJob(WORK, 1);

        events.await(JobCompleted.class);
        assertThat(worker.status().deadThreads()).isEmpty();
    }

    @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
    private static <E extends Throwable> void sneak(Throwable error) throws E {
        throw (E) error;
    }

    @Test
    void aHandlerThatStopsItsWorkerLeavesNothingLocked() throws Exception {
        CountDownLatch bothRun = new CountDownLatch(2);
        AtomicReference<Worker> worker = new AtomicReference<>();
        worker.set(db.start(db.worker()
                .settings(WorkerSettings.builder()
                        .concurrency(2)
                        .shutdownGracePeriod(Duration.ofMillis(100))
                        .build())
                .task(Task.of("stopping", Integer.class), (n, context) -> {
                    bothRun.countDown();
                    bothRun.await();
                    if (n == 0) {
                        worker.get().stop();
                    } else {
                        new CountDownLatch(1).await();
                    }
                })));
        db.scheduler().addJob(Task.of("stopping", Integer.class), 0);
        db.scheduler().addJob(Task.of("stopping", Integer.class), 1);

        Awaitility.await()
                .until(() -> db.sql("select count(*) from {schema}._private_workers")
                                .query(Integer.class)
                                .single()
                        == 0);
        assertThat(db.sql("select count(*) from {schema}._private_jobs where locked_at is not null or attempts > 0")
                        .query(Integer.class)
                        .single())
                .isZero();
    }
}
