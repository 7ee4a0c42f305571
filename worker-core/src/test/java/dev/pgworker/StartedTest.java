package dev.pgworker;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.crontab.Crontab;
import dev.pgworker.event.WorkerEvent.CronStarted;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.job.ActiveWorker;
import dev.pgworker.job.Task;
import dev.pgworker.limit.Limit;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.RecurringQuery;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testing.OwnDatabase;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** What a worker promises that has started, and what it says until then. */
@Tag("any-postgres")
class StartedTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final String CRONTAB = "the crontab is not registered yet";

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();

    private Worker.Builder worker() {
        return db.worker()
                .task(WORK, (n, context) -> {})
                .listener(events)
                .crontab(Crontab.parse("test", "0 4 * * * work ?id=nightly\n0 5 * * * work ?id=early"));
    }

    private static Schedule hourly() {
        return Schedule.builder("hourly", Recurrence.fixedDelay(Duration.ofHours(1)), "work", null)
                .build();
    }

    @Test
    void whatIsDeclaredIsInTheDatabase() throws InterruptedException {
        Worker worker =
                db.start(worker().schedules(List.of(hourly())).limits(List.of(Limit.concurrency("one", 1, "work"))));

        assertThat(worker.awaitStarted(PATIENCE)).isTrue();

        assertThat(worker.status().starting()).isEmpty();
        assertThat(worker.status().listening()).isTrue();
        assertThat(db.queries().registeredWorkers())
                .extracting(ActiveWorker::id)
                .containsExactly(worker.id());
        assertThat(items(worker)).hasSize(2).allMatch(job -> job.createdAt() != null);
        assertThat(worker.recurringJobs().find("hourly")).isPresent();
        assertThat(worker.jobLimits().find("one")).isPresent();
    }

    @Test
    void aLockedCrontabIsShownAndSaid() throws Exception {
        Worker worker;
        try (Connection stranger = lock("_private_known_crontabs")) {
            worker = db.start(worker());
            Awaitility.await().until(() -> worker.status().starting().equals(List.of(CRONTAB)));
            // The first try to register them is over.
            events.await(CronStarted.class);
            assertThat(items(worker))
                    .hasSize(2)
                    .allMatch(item -> item.schedule() != null && item.createdAt() == null && item.nextRun() != null);
            db.scheduler().addJob(WORK, 1);
            events.await(JobCompleted.class);
            assertThat(worker.status().starting()).containsExactly(CRONTAB);
            stranger.rollback();
        }

        assertThat(worker.awaitStarted(PATIENCE)).isTrue();

        assertThat(items(worker)).hasSize(2).allMatch(job -> job.createdAt() != null);
        assertThat(worker.status().starting()).isEmpty();
    }

    @Test
    void lockedSchedulesAreSaid() throws Exception {
        Worker worker;
        try (Connection stranger = lock("pgworker_schedules")) {
            worker = db.start(worker().schedules(List.of(hourly())));
            Awaitility.await()
                    .until(() -> worker.status()
                            .starting()
                            .equals(List.of("declared schedules are not in the database yet")));
            stranger.rollback();
        }

        assertThat(worker.awaitStarted(PATIENCE)).isTrue();

        assertThat(worker.recurringJobs().find("hourly")).isPresent();
    }

    private Connection lock(String table) throws SQLException {
        Connection stranger = db.dataSource().getConnection();
        stranger.setAutoCommit(false);
        try (Statement statement = stranger.createStatement()) {
            // Whoever only reads is not held up.
            statement.execute(db.schema().in("lock table {schema}." + table + " in exclusive mode"));
        }
        return stranger;
    }

    @Test
    void aStopEndsTheWait() throws Exception {
        try (Connection stranger = lock("_private_known_crontabs")) {
            Worker worker = worker().build();
            assertThat(worker.awaitStarted(PATIENCE)).as("not running").isFalse();
            worker.start();
            Thread[] waiting = new Thread[1];
            CompletableFuture<Boolean> started = CompletableFuture.supplyAsync(
                    () -> {
                        try {
                            return worker.awaitStarted(Duration.ofDays(1));
                        } catch (InterruptedException e) {
                            throw new IllegalStateException(e);
                        }
                    },
                    task -> {
                        waiting[0] = new Thread(task);
                        waiting[0].start();
                    });
            Awaitility.await().until(() -> waiting[0].getState() == Thread.State.TIMED_WAITING);

            worker.stop();

            assertThat(started.get(60, TimeUnit.SECONDS)).isFalse();
            stranger.rollback();
        }
    }

    @Test
    void nobodyWaitsForADatabaseThatIsAway() throws Exception {
        OwnDatabase database = new OwnDatabase();
        database.create();
        try (HikariDataSource pool = new HikariDataSource(TestSchema.poolConfig(database.url(), 6))) {
            new SchemaMigrator(pool, WorkerSchema.DEFAULT).migrate();
            database.forbidConnections();
            database.cut();
            try (Worker worker = Worker.builder(pool)
                    .task(WORK, (n, context) -> {})
                    .cronItem(Crontab.parse("test", "0 4 * * * work").items().get(0))
                    .build()) {
                worker.start();

                assertThat(worker.awaitStarted(Duration.ofDays(1))).isFalse();

                assertThat(worker.status().outage()).isTrue();
                assertThat(worker.status().starting())
                        .contains("the worker is not registered yet", CRONTAB, "the worker does not look for jobs yet");
                database.allowConnections();
                Awaitility.await().until(() -> worker.awaitStarted(Duration.ofSeconds(1)));
                assertThat(items(worker)).allMatch(job -> job.createdAt() != null);
            }
        } finally {
            database.allowConnections();
            database.drop();
        }
    }

    private static List<RecurringJob> items(Worker worker) {
        return worker.recurringJobs()
                .list(new RecurringQuery(null, null, null, null, Set.of(RecurringJob.Origin.CRONTAB), null, 100));
    }
}
