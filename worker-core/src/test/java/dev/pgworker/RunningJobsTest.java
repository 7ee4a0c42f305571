package dev.pgworker;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Predicate;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.JobProgress;
import dev.pgworker.job.RunningJob;
import dev.pgworker.job.Task;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.TaskHandler;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.ClaimSql;
import dev.pgworker.testing.InterceptedDataSource;
import dev.pgworker.testing.LogCapture;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Jobs that run, and how far they have come, as others see them. */
@Tag("any-postgres")
class RunningJobsTest {

    private static final Task<String> WORK = Task.of("work", String.class);

    private static final Duration LIMIT = Duration.ofMinutes(2);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final CountDownLatch release = new CountDownLatch(1);
    private final RecordingListener events = new RecordingListener();

    @AfterEach
    void letHandlersEnd() {
        release.countDown();
    }

    private TaskHandler<String> waiting(Consumer<JobContext> first) {
        return (text, context) -> {
            first.accept(context);
            release.await();
        };
    }

    private List<RunningJob> awaitRunning(Predicate<List<RunningJob>> expected) throws InterruptedException {
        long end = System.nanoTime() + LIMIT.toNanos();
        List<RunningJob> running = db.queries().running(1000);
        while (!expected.test(running)) {
            assertThat(System.nanoTime())
                    .as("Waited in vain, at last with " + running)
                    .isLessThan(end);
            TimeUnit.MILLISECONDS.sleep(20);
            running = db.queries().running(1000);
        }
        return running;
    }

    private long rows() {
        return db.sql("select count(*) from {schema}.pgworker_running")
                .query(Long.class)
                .single();
    }

    @Test
    void progressIsSeenWhileTheHandlerRuns() throws Exception {
        AtomicReference<JobContext> context = new AtomicReference<>();
        Worker worker = db.start(db.worker().listener(events).task(WORK, waiting(running -> {
            running.progress(3, 10, "reading");
            context.set(running);
        })));
        long id = db.scheduler().addJob(WORK, "x").id();

        RunningJob seen = awaitRunning(running -> running.size() == 1).get(0);

        assertThat(seen.job().id()).isEqualTo(id);
        assertThat(seen.job().lockedBy()).isEqualTo(worker.id());
        assertThat(seen.job().payload()).as("not read").isEmpty();
        assertThat(seen.progress())
                .extracting(JobProgress::done, JobProgress::total, JobProgress::text)
                .containsExactly(3L, 10L, "reading");
        assertThat(seen.startedAt())
                .isBetween(seen.job().lockedAt(), seen.progress().updatedAt());

        context.get().progress(Long.MAX_VALUE, 0, null);

        JobProgress next = awaitRunning(running -> running.get(0).progress().done() > 3)
                .get(0)
                .progress();
        assertThat(next.done()).isEqualTo(Long.MAX_VALUE);
        assertThat(next.total()).isZero();
        assertThat(next.text()).isNull();
        assertThat(next.updatedAt()).isAfter(seen.progress().updatedAt());
        assertThat(awaitRunning(running -> true).get(0).startedAt()).isEqualTo(seen.startedAt());

        release.countDown();
        events.await(JobCompleted.class);
        assertThat(db.queries().running(1)).isEmpty();
        context.get().progress(9, 9, "the attempt has ended");
        awaitNoRows();
    }

    @Test
    void progressWithoutATimeIsNone() {
        long id = db.scheduler().addJob(WORK, "x").id();
        db.sql("update {schema}._private_jobs set locked_at = now(), locked_by = 'other', attempts = 1")
                .update();
        db.sql("insert into {schema}.pgworker_running (worker_id, job_id, locked_at, started_at, done)"
                        + " select locked_by, id, locked_at, locked_at, 5 from {schema}._private_jobs")
                .update();

        assertThat(db.queries().running(10)).singleElement().satisfies(running -> {
            assertThat(running.job().id()).isEqualTo(id);
            assertThat(running.progress()).isNull();
        });
    }

    private void awaitNoRows() throws InterruptedException {
        long end = System.nanoTime() + LIMIT.toNanos();
        while (rows() > 0) {
            assertThat(System.nanoTime()).isLessThan(end);
            TimeUnit.MILLISECONDS.sleep(20);
        }
    }

    @Test
    @Tag("thorough")
    void aJobThatReportsNothingIsSeenAfterASecondAndTheLongestRunningFirst() throws Exception {
        db.start(db.worker().task(WORK, waiting(running -> {})));
        long first = db.scheduler().addJob(WORK, "x").id();
        awaitRunning(running -> running.size() == 1);
        long second = db.scheduler().addJob(WORK, "x").id();

        List<RunningJob> seen = awaitRunning(running -> running.size() == 2);

        assertThat(seen).extracting(running -> running.job().id()).containsExactly(first, second);
        assertThat(seen).extracting(RunningJob::progress).containsOnlyNulls();
        assertThat(db.queries().running(1))
                .extracting(running -> running.job().id())
                .containsExactly(first);
        assertThatThrownBy(() -> db.queries().running(0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("limit must be between 1 and 1000, but is 0");
    }

    @Test
    @Tag("thorough")
    void anyTextIsMadeHarmlessAndNegativeNumbersAreRefused() throws Exception {
        AtomicReference<JobContext> context = new AtomicReference<>();
        db.start(db.worker().task(WORK, waiting(context::set)));
        db.scheduler().addJob(WORK, "x");
        awaitRunning(running -> running.size() == 1);

        assertThatThrownBy(() -> context.get().progress(-1, 1, null))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("done must not be negative, but is -1");
        assertThatThrownBy(() -> context.get().progress(1, Long.MIN_VALUE, null))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("total must not be negative");
        context.get().progress(1, 1, "a\0b\uD800c\uDC00" + "x".repeat(993) + "\uD83D\uDE00" + "y".repeat(10_000));

        RunningJob seen =
                awaitRunning(running -> running.get(0).progress() != null).get(0);
        // The last character that would fit is half of one.
        assertThat(seen.progress().text()).isEqualTo("a\uFFFDb\uFFFDc\uFFFD" + "x".repeat(993));
        context.get().progress(2, 1, "");
        assertThat(awaitRunning(running -> running.get(0).progress().done() == 2)
                        .get(0)
                        .progress()
                        .text())
                .isEmpty();
    }

    @Test
    @Tag("thorough")
    void aMillionReportsCostAStatementPerSecond() throws Exception {
        AtomicInteger statements = new AtomicInteger();
        DataSourceCounting counted = new DataSourceCounting(db, statements);
        db.start(Worker.builder(counted.dataSource())
                .schema(db.schema())
                .listener(events)
                .task(WORK, (text, context) -> {
                    for (int i = 0; i < 1_000_000; i++) {
                        context.progress(i, 1_000_000, "still at it");
                    }
                }));
        long begin = System.nanoTime();
        db.scheduler().addJob(WORK, "x");

        events.await(JobCompleted.class);

        long seconds = 1 + Duration.ofNanos(System.nanoTime() - begin).toSeconds();
        // What dead workers have left is looked for once.
        assertThat((long) statements.get()).isLessThanOrEqualTo(2 * seconds + 1);
    }

    /** Counts the statements about running jobs. */
    private record DataSourceCounting(TestSchema db, AtomicInteger statements) {
        InterceptedDataSource dataSource() {
            return new InterceptedDataSource(db.dataSource(), (call, proceed) -> {
                if (call.method().getName().startsWith("execute")
                        && (call.sql().contains("pgworker_running")
                                || call.sql().contains("forget_running"))) {
                    statements.incrementAndGet();
                }
                return proceed.proceed();
            });
        }
    }

    @Test
    void jobsThatEndSoonCostNothing() throws Exception {
        AtomicInteger statements = new AtomicInteger();
        Worker worker = db.start(Worker.builder(new DataSourceCounting(db, statements).dataSource())
                .schema(db.schema())
                .listener(events)
                .task(WORK, (text, context) -> {}));
        for (int i = 0; i < 100; i++) {
            db.scheduler().addJob(WORK, "x");
        }
        events.await(JobCompleted.class, 100);
        worker.stop();

        assertThat(statements).hasValue(0);
    }

    @Test
    @Tag("thorough")
    void whatDoesNotChangeIsWrittenOnce() throws Exception {
        AtomicInteger statements = new AtomicInteger();
        db.start(Worker.builder(new DataSourceCounting(db, statements).dataSource())
                .schema(db.schema())
                .task(WORK, waiting(running -> running.progress(1, 2, "waits"))));
        db.scheduler().addJob(WORK, "x");
        awaitRunning(running -> running.size() == 1);
        // Statements are counted before they are made.
        int before = statements.get();

        TimeUnit.MILLISECONDS.sleep(2_500);

        assertThat(statements).hasValue(before);
    }

    @Test
    @Tag("thorough")
    void whatIsBlockedKeepsNoJobAndHardlyAStop() throws Exception {
        Worker worker = db.start(db.worker()
                .listener(events)
                .settings(
                        WorkerSettings.builder().concurrency(4).statistics(true).build())
                .task(WORK, (text, context) -> {
                    if (text.equals("long")) {
                        context.progress(1, 2, null);
                        release.await();
                    }
                }));
        try (Connection blocking = db.dataSource().getConnection();
                Statement statement = blocking.createStatement()) {
            blocking.setAutoCommit(false);
            statement.execute(
                    db.schema()
                            .in(
                                    "lock table {schema}.pgworker_running, {schema}.pgworker_task_minutes, {schema}.pgworker_samples"));
            db.scheduler().addJob(WORK, "long");
            awaitBlocked();

            for (int i = 0; i < 20; i++) {
                db.scheduler().addJob(WORK, "short");
            }
            events.await(JobCompleted.class, 20);
            release.countDown();
            events.await(JobCompleted.class, 21);
            // The lock is held until after that.
            worker.stop();

            assertThat(db.queries().activeWorkers()).isEmpty();
            blocking.rollback();
        }
        // What was blocked goes on for a moment, beside the worker that has stopped.
        awaitNobodyAt("%pgworker_running%");
    }

    private void awaitNobodyAt(String statement) throws InterruptedException {
        long end = System.nanoTime() + LIMIT.toNanos();
        while (db.sql(
                                "select count(*) from pg_stat_activity where query like ? and state = 'active' and pid <> pg_backend_pid()")
                        .param(statement)
                        .query(Long.class)
                        .single()
                > 0) {
            assertThat(System.nanoTime()).isLessThan(end);
            TimeUnit.MILLISECONDS.sleep(10);
        }
    }

    private void awaitBlocked() throws InterruptedException {
        long end = System.nanoTime() + LIMIT.toNanos();
        while (db.sql(
                                "select count(*) from pg_locks where relation = '{schema}.pgworker_running'::regclass and not granted")
                        .query(Long.class)
                        .single()
                == 0) {
            assertThat(System.nanoTime()).isLessThan(end);
            TimeUnit.MILLISECONDS.sleep(10);
        }
    }

    @Test
    void aRoleWithoutRightsRunsJobsAndIsToldOnce() throws Exception {
        String role = GuideRoles.create(db.dataSource(), db.schema(), "worker");
        db.sql(
                        "revoke all on {schema}.pgworker_running, {schema}.pgworker_task_minutes, {schema}.pgworker_samples from "
                                + role)
                .update();
        HikariConfig config = TestSchema.poolConfig(TestPostgres.jdbcUrl(), 10);
        config.setConnectionInitSql("set role " + role);
        try (HikariDataSource asRole = new HikariDataSource(config);
                LogCapture log = new LogCapture(Class.forName("dev.pgworker.internal.record.Recording"))) {
            Worker worker = db.start(Worker.builder(asRole)
                    .schema(db.schema())
                    .listener(events)
                    .settings(WorkerSettings.builder().statistics(true).build())
                    .task(WORK, (text, context) -> {
                        context.progress(1, 2, null);
                        if (text.equals("long")) {
                            TimeUnit.MILLISECONDS.sleep(2_500);
                        }
                    }));
            db.scheduler().addJob(WORK, "long");
            db.scheduler().addJob(WORK, "short");
            events.await(JobCompleted.class, 2);
            worker.stop();

            assertThat(log.messages())
                    .hasSizeBetween(2, 3)
                    .doesNotHaveDuplicates()
                    .allMatch(line -> line.contains("permission denied"));
            assertThat(log.messages().get(0))
                    .contains("jobs run all the same")
                    .contains("grant select, insert, update and delete on pgworker_");
            assertThat(db.queries().activeWorkers()).isEmpty();
        } finally {
            db.sql("drop owned by " + role).update();
            db.sql("drop role " + role).update();
        }
    }

    @Test
    void anOutageIsNotedOnceAndWhatWasMissedIsRecordedAfterIt() throws Exception {
        AtomicBoolean broken = new AtomicBoolean(true);
        CountDownLatch failed = new CountDownLatch(3);
        InterceptedDataSource breaking = new InterceptedDataSource(db.dataSource(), (call, proceed) -> {
            if (call.is("executeUpdate", "into") && call.sql().contains("pgworker_running") && broken.get()) {
                failed.countDown();
                throw new SQLException("broken on purpose", "08006");
            }
            return proceed.proceed();
        });
        try (LogCapture log = new LogCapture(Outage.class)) {
            db.start(Worker.builder(breaking)
                    .schema(db.schema())
                    .task(WORK, waiting(running -> running.progress(1, 2, null))));
            db.scheduler().addJob(WORK, "x");
            assertThat(failed.await(120, TimeUnit.SECONDS)).isTrue();
            broken.set(false);

            awaitRunning(running -> running.size() == 1);

            assertThat(log.messages().stream().filter(line -> line.contains("cannot be used")))
                    .hasSize(1)
                    .allMatch(line -> line.contains("worker-record"));
        }
    }

    @Test
    void whatADeadWorkerLeftIsNeitherShownNorKept() throws Exception {
        long id = db.scheduler().addJob(WORK, "x").id();
        db.sql("select from " + ClaimSql.claim("'dead'", "1") + " c").query().listOfRows();
        db.sql("""
                        insert into {schema}.pgworker_running (worker_id, job_id, locked_at, started_at)
                        select 'dead', id, locked_at - interval '1 microsecond', now() from {schema}._private_jobs
                        union all select 'other', id, locked_at, now() from {schema}._private_jobs
                        union all select 'dead', 0, now(), now()
                        """).update();
        assertThat(db.queries().running(1000)).isEmpty();
        db.sql(
                        "update {schema}.pgworker_running r set locked_at = j.locked_at from {schema}._private_jobs j where j.id = r.job_id")
                .update();
        assertThat(db.queries().running(1000))
                .extracting(running -> running.job().id())
                .containsExactly(id);
        db.operations().cleanup(Set.of(CleanupTask.values()));

        assertThat(db.sql("select worker_id from {schema}.pgworker_running")
                        .query(String.class)
                        .list())
                .containsExactly("dead");
        db.operations().forceUnlockWorkers(List.of("dead"));
        assertThat(db.queries().running(1000)).isEmpty();
        db.start(db.worker().task(WORK, waiting(running -> running.progress(1, 2, null))));
        awaitRunning(running -> running.size() == 1);
        assertThat(rows()).isOne();
    }

    @Test
    @Tag("thorough")
    void aSlowDirectJobIsSeen() throws Exception {
        db.start(db.worker()
                .tasks(List.of(TaskRegistration.of(WORK, waiting(running -> running.progress(1, 2, null)))
                        .with(TaskOptions.DEFAULT.withDirect(true)))));
        db.scheduler().addJob(WORK, "x");

        assertThat(awaitRunning(running -> running.size() == 1)
                        .get(0)
                        .progress()
                        .total())
                .isEqualTo(2);
    }

    @Test
    void eachIsLookedUpByItsIdWhateverThePlannerBelieves() throws Exception {
        db.sql("select count(*) from {schema}.add_jobs(array(select row('work', null, null, null, null, null, null,"
                        + " null)::{schema}.job_spec from generate_series(1, 50000) g))")
                .query()
                .listOfRows();
        db.sql("update {schema}._private_jobs set locked_at = now(), locked_by = 'w' where id % 10 = 0")
                .update();
        db.sql(
                        "insert into {schema}.pgworker_running (worker_id, job_id, locked_at, started_at)"
                                + " select 'w', id, locked_at, now() + id * interval '1 us' from {schema}._private_jobs where locked_by = 'w'")
                .update();
        for (String statistics : List.of("analyze {schema}._private_jobs", "analyze {schema}.pgworker_running")) {
            db.sql(statistics).update();
            try (Connection connection = db.dataSource().getConnection();
                    Statement statement = connection.createStatement()) {
                connection.setAutoCommit(false);
                SingleConnectionDataSource single = new SingleConnectionDataSource(connection, true);
                List<Long> before = read(statement);
                assertThat(WorkerClient.jobQueries(single, db.schema()).running(100))
                        .hasSize(100);
                List<Long> after = read(statement);

                // The server may have taken over what it counted before, so that the second number is the smaller one.
                assertThat(after.get(0)).as("rows read one after the other").isLessThanOrEqualTo(before.get(0));
                // Of each there are two versions.
                assertThat(after.get(1) - before.get(1)).isLessThanOrEqualTo(210);
            }
        }
    }

    private List<Long> read(Statement statement) throws SQLException {
        try (ResultSet row = statement.executeQuery(db.schema()
                .in("select pg_stat_get_xact_tuples_returned('{schema}._private_jobs'::regclass),"
                        + " (select sum(pg_stat_get_xact_tuples_returned(indexrelid)) from pg_index"
                        + " where indrelid = '{schema}._private_jobs'::regclass)"))) {
            row.next();
            return List.of(row.getLong(1), row.getLong(2));
        }
    }
}
