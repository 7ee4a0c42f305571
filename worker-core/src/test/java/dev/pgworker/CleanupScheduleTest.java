package dev.pgworker;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.event.WorkerEvent.JobsChanged;
import dev.pgworker.internal.client.JdbcWorkerOperations;
import dev.pgworker.internal.store.CleanupStore;
import dev.pgworker.internal.watch.ScheduledCleanup;
import dev.pgworker.job.CleanupResult;
import dev.pgworker.job.CleanupSettings;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.JobSpec;
import dev.pgworker.testing.LogCapture;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Clean-up that workers do by themselves. */
@Tag("any-postgres")
class CleanupScheduleTest {

    private static final Duration MONTH = Duration.ofDays(30);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();

    private Worker.Builder worker(CleanupTask... tasks) {
        CleanupSettings everySecond =
                new CleanupSettings("* * * * * *", ZoneOffset.UTC, Set.of(tasks), Duration.ofDays(30));
        return db.worker()
                .settings(WorkerSettings.builder().cleanup(everySecond).build())
                .listener(events);
    }

    private void failed(String task, String age) {
        long id = db.scheduler()
                .addJob(task, 1, JobSpec.builder().maxAttempts(1).build())
                .id();
        db.sql("update {schema}._private_jobs set attempts = 1, updated_at = now() - ?::interval where id = ?")
                .params(age, id)
                .update();
    }

    private void schedule(String name, String endsAt, String nextAt, boolean awaitsEnd, boolean declared) {
        db.sql(
                        "insert into {schema}.pgworker_schedules (name, kind, every, task_identifier, starts_at, ends_at, next_at, awaits_end,"
                                + " declared) values (?, 'delay', '1 hour', 'work', now() - interval '1 year', now() + ?::interval,"
                                + " ?::timestamptz, ?, ?)")
                .params(name, endsAt, nextAt, awaitsEnd, declared)
                .update();
    }

    private List<String> schedules() {
        return db.sql("select name from {schema}.pgworker_schedules order by 1")
                .query(String.class)
                .list();
    }

    private List<String> tasksOfJobs() {
        return db.sql("select task_identifier from {schema}.jobs order by id")
                .query(String.class)
                .list();
    }

    @Test
    void whatIsOldGoesAndTheRestStays() {
        failed("old", "31 days");
        failed("young", "29 days");
        db.scheduler().addJob("waits", 1);
        schedule("ended", "-1 second", null, false, false);
        schedule("ended, but declared", "-1 second", null, false, true);
        schedule("goes on", "1 hour", null, false, false);

        db.start(worker(CleanupTask.DELETE_PERMAFAILED_JOBS, CleanupTask.DELETE_ENDED_SCHEDULES));

        JobsChanged changed = events.await(JobsChanged.class);
        assertThat(changed.action()).isEqualTo("cleanup");
        assertThat(changed.user()).isEqualTo("pgworker.cleanup");
        assertThat(changed.count()).isEqualTo(2);
        assertThat(tasksOfJobs()).containsExactly("young", "waits");
        assertThat(schedules()).containsExactly("ended, but declared", "goes on");
    }

    @Test
    void whatHasSomethingLeftToDoIsNeitherDeletedNorCounted() {
        schedule("ended", "-1 second", null, false, false);
        schedule("behind", "-1 second", "-infinity", false, false);
        schedule("runs", "-1 second", null, true, false);
        Set<CleanupTask> ended = EnumSet.of(CleanupTask.DELETE_ENDED_SCHEDULES);

        assertThat(db.queries().previewCleanup(ended).counts())
                .containsEntry(CleanupTask.DELETE_ENDED_SCHEDULES, 1L)
                .hasSize(1);
        CleanupResult result = db.operations().cleanup(ended);

        assertThat(result.deleted(CleanupTask.DELETE_ENDED_SCHEDULES)).isEqualTo(1);
        assertThat(schedules()).containsExactly("behind", "runs");
    }

    @Test
    void withoutAScheduleNothingGoes() {
        failed("old", "1 year");
        Worker worker = db.start(db.worker().listener(events));

        assertThat(worker.scheduledTasks()).extracting(Object::toString).doesNotContain("worker: clean up");
        assertThat(db.sql("select count(*) from {schema}.pgworker_cleanup")
                        .query(Integer.class)
                        .single())
                .isZero();
    }

    @Test
    @Tag("thorough")
    void severalWorkersDoItOnceEachTime() {
        for (int i = 0; i < 3; i++) {
            db.start(worker(CleanupTask.DELETE_PERMAFAILED_JOBS));
        }
        for (int i = 0; i < 3; i++) {
            failed("old", "1 year");
            int done = i + 1;
            Awaitility.await().until(() -> tasksOfJobs().isEmpty());
            Awaitility.await().until(() -> events.all(JobsChanged.class).size() == done);
        }
        assertThat(events.all(JobsChanged.class)).allMatch(changed -> changed.count() == 1);
    }

    @Test
    @Tag("thorough")
    void aCleanUpThatFailsIsToldWithTheRemedyAndLeavesTheNext() {
        failed("old", "1 year");
        db.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as $$
                begin
                  raise exception 'on purpose' using errcode = '42501';
                end $$""").update();
        db.sql(
                        "create trigger refuse before delete on {schema}._private_jobs for each row execute function {schema}.refuse()")
                .update();
        try (LogCapture log = new LogCapture(ScheduledCleanup.class)) {
            db.start(worker(CleanupTask.DELETE_PERMAFAILED_JOBS));
            Awaitility.await().until(() -> log.messages().size() >= 2);
            assertThat(log.messages().get(0)).contains("pgworker.cleanup", "on purpose", "docs/schema.md");
        }
        assertThat(tasksOfJobs()).containsExactly("old");
        db.sql("drop trigger refuse on {schema}._private_jobs").update();
        Awaitility.await().until(() -> tasksOfJobs().isEmpty());
    }

    @Test
    void eachTimeIsThatOfOneWorkerUntilItIsDoneOrAnHourHasPassed() throws SQLException {
        CleanupStore store = new CleanupStore(db.dataSource(), db.schema());
        Instant three = store.now().truncatedTo(ChronoUnit.HOURS).minus(2, ChronoUnit.HOURS);
        Instant four = three.plus(1, ChronoUnit.HOURS);

        assertThat(store.begin(three)).isTrue();
        assertThat(store.begin(three)).isFalse();
        assertThat(store.begin(four)).as("the one before has not ended").isFalse();
        store.end(three);
        assertThat(store.begin(three)).as("has been done").isFalse();
        assertThat(store.begin(four)).isTrue();
        store.end(three);
        assertThat(store.begin(three.plus(90, ChronoUnit.MINUTES)))
                .as("ended by another")
                .isFalse();

        db.sql("update {schema}.pgworker_cleanup set busy_until = now() - interval '1 second'")
                .update();
        assertThat(store.begin(four.plusSeconds(1))).as("its worker has died").isTrue();

        db.sql(
                        "update {schema}.pgworker_cleanup set due_at = now() + interval '1 day', busy_until = now() + interval '1 day'")
                .update();
        assertThat(store.begin(four.plusSeconds(2)))
                .as("the clock was set back")
                .isTrue();
    }

    @Test
    void theStopEndsALongOne() throws Exception {
        db.sql("""
                insert into {schema}._private_tasks (identifier) values ('old')""").update();
        db.sql("""
                insert into {schema}._private_jobs (task_id, attempts, max_attempts, updated_at)
                select (select id from {schema}._private_tasks), 1, 1, now() - interval '1 year' from generate_series(1, 12000)""").update();
        Thread.currentThread().interrupt();
        CleanupResult result;
        try {
            result = db.operations().cleanup(EnumSet.of(CleanupTask.DELETE_PERMAFAILED_JOBS), MONTH);
        } finally {
            assertThat(Thread.interrupted()).isTrue();
        }
        assertThat(result.deleted(CleanupTask.DELETE_PERMAFAILED_JOBS)).isEqualTo(5_000);
        assertThat(db.operations()
                        .cleanup(EnumSet.of(CleanupTask.DELETE_PERMAFAILED_JOBS), MONTH)
                        .deleted(CleanupTask.DELETE_PERMAFAILED_JOBS))
                .isEqualTo(7_000);
    }

    @Test
    void aLongOneLeavesTheRestToTheNext() {
        db.sql("""
                insert into {schema}._private_tasks (identifier) values ('old')""").update();
        db.sql("""
                insert into {schema}._private_jobs (task_id, attempts, max_attempts, updated_at)
                select (select id from {schema}._private_tasks), 1, 1, now() - interval '1 year' from generate_series(1, 6000)""").update();
        db.sql("""
                insert into {schema}.pgworker_schedules (name, kind, every, task_identifier, starts_at, ends_at, next_at)
                select i, 'delay', '1 hour', 'old', now() - interval '1 year', now() - interval '1 day', null
                from generate_series(1, 6000) i""").update();
        Set<CleanupTask> both = EnumSet.of(CleanupTask.DELETE_PERMAFAILED_JOBS, CleanupTask.DELETE_ENDED_SCHEDULES);
        JdbcWorkerOperations operations = (JdbcWorkerOperations) db.operations();

        CleanupResult result = operations.cleanup(both, MONTH, Duration.ZERO);

        assertThat(result.deleted(CleanupTask.DELETE_PERMAFAILED_JOBS)).isEqualTo(5_000);
        assertThat(result.deleted(CleanupTask.DELETE_ENDED_SCHEDULES)).isEqualTo(5_000);
        assertThat(operations.cleanup(both, MONTH).deleted())
                .containsEntry(CleanupTask.DELETE_PERMAFAILED_JOBS, 1_000L)
                .containsEntry(CleanupTask.DELETE_ENDED_SCHEDULES, 1_000L);
    }

    @Test
    void anEndedScheduleThatSomebodyIsChangingIsLeftAlone() throws SQLException {
        schedule("changed", "-1 second", null, false, false);
        schedule("ended", "-1 second", null, false, false);
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(
                    db.schema().in("update {schema}.pgworker_schedules set ends_at = null where name = 'changed'"));
            CleanupResult result = CompletableFuture.supplyAsync(
                            () -> db.operations().cleanup(EnumSet.of(CleanupTask.DELETE_ENDED_SCHEDULES)),
                            OwnThread.EACH)
                    .orTimeout(120, TimeUnit.SECONDS)
                    .join();
            assertThat(result.deleted(CleanupTask.DELETE_ENDED_SCHEDULES)).isEqualTo(1);
            other.commit();
        }
        assertThat(schedules()).containsExactly("changed");
    }

    static Stream<Duration> forbiddenAges() {
        return Stream.of(Duration.ofNanos(-1), Duration.ofDays(3650).plusNanos(1));
    }

    @Test
    void badAgesAreRefused() {
        assertThat(forbiddenAges()).allSatisfy(age -> {
            assertThatThrownBy(() -> db.operations().cleanup(Set.of(CleanupTask.GC_JOB_QUEUES), age))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("failedJobsOlderThan");
            assertThatThrownBy(() -> new CleanupSettings(null, ZoneOffset.UTC, Set.of(CleanupTask.GC_JOB_QUEUES), age))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageStartingWith("failedJobsOlderThan");
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "* * * * *", "often", "0 0 3 31 2 *", "60 * * * * *", "@often"})
    void badSchedulesAreRefused(String schedule) {
        assertThatThrownBy(() ->
                        new CleanupSettings(schedule, ZoneOffset.UTC, Set.of(CleanupTask.GC_JOB_QUEUES), Duration.ZERO))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("schedule must be");
    }
}
