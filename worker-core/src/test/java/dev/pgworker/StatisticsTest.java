package dev.pgworker;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.PGConnection;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.internal.store.StatisticsStore;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.statistics.BacklogSample;
import dev.pgworker.statistics.JobStatistics;
import dev.pgworker.statistics.Quantiles;
import dev.pgworker.statistics.StatisticsPoint;
import dev.pgworker.statistics.TaskStatistics;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.InterceptedDataSource;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** What workers record about the last 24 hours, and what is read of it. */
class StatisticsTest {

    private static final Task<String> WORK = Task.of("work", String.class);
    private static final Task<String> FAIL = Task.of("fail", String.class);

    private static final Duration DAY = Duration.ofHours(24);

    @RegisterExtension
    final TestSchema db = new TestSchema(30);

    private final RecordingListener events = new RecordingListener();

    private Worker.Builder recording() {
        return recording(db.worker());
    }

    private Worker.Builder recording(Worker.Builder builder) {
        return recording(builder, false);
    }

    private Worker.Builder recording(Worker.Builder builder, boolean direct) {
        TaskOptions options = TaskOptions.DEFAULT.withDirect(direct);
        return builder.statistics(true)
                .listener(events)
                .tasks(List.of(
                        TaskRegistration.of(WORK, (text, context) -> TimeUnit.MILLISECONDS.sleep(20))
                                .with(options),
                        TaskRegistration.of(FAIL, (text, context) -> {
                                    throw JobControlException.retryIn(DAY, "on purpose", null);
                                })
                                .with(options)));
    }

    private JobStatistics statistics() {
        return db.queries().statistics();
    }

    private long count(String table) {
        return db.sql("select count(*) from {schema}." + table)
                .query(Long.class)
                .single();
    }

    private static void await(Callable<Boolean> condition) {
        Awaitility.await().until(condition);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whatSeveralWorkersDidIsAddedUp(boolean direct) throws Exception {
        List<Worker> workers =
                List.of(db.start(recording(db.worker(), direct)), db.start(recording(db.worker(), direct)));
        for (int i = 0; i < 5; i++) {
            db.scheduler().addJob(WORK, "x");
        }
        db.scheduler().addJob(FAIL, "x", JobSpec.builder().maxAttempts(1).build());
        db.scheduler().addJob(FAIL, "x");
        db.scheduler().addJob(FAIL, "x");
        events.await(JobCompleted.class, 5);
        events.await(JobFailed.class, 3);
        workers.forEach(Worker::stop);

        List<StatisticsPoint> points = statistics().series(Duration.ofHours(1), 12);
        List<TaskStatistics> tasks = statistics().tasks(Duration.ofMinutes(1));

        assertThat(points).hasSize(12);
        assertThat(points.stream().mapToLong(StatisticsPoint::succeeded).sum()).isEqualTo(5);
        assertThat(points.stream().mapToLong(StatisticsPoint::retried).sum()).isEqualTo(2);
        assertThat(points.stream().mapToLong(StatisticsPoint::failed).sum()).isEqualTo(1);
        assertThat(points.get(0)).isEqualTo(new StatisticsPoint(points.get(0).from(), 0, 0, 0, null, null, null));
        for (int i = 1; i < points.size(); i++) {
            assertThat(points.get(i).from()).isEqualTo(points.get(i - 1).from().plusSeconds(300));
        }
        assertThat(points.get(11).from()).isBetween(Instant.now().minusSeconds(900), Instant.now());
        assertThat(tasks).extracting(TaskStatistics::taskIdentifier).containsExactly("fail", "work");
        TaskStatistics work = tasks.get(1);
        assertThat(work.succeeded()).isEqualTo(5);
        assertThat(work.run().median()).isGreaterThanOrEqualTo(Duration.ofMillis(16));
        assertThat(work.run().longest()).isGreaterThanOrEqualTo(work.run().most());
        assertThat(work.waited()).isNotNull();
        assertThat(work.lastEndedAt()).isBetween(Instant.now().minusSeconds(900), Instant.now());
        assertThat(tasks.get(0).retried()).isEqualTo(2);
        assertThat(tasks.get(0).failed()).isEqualTo(1);
        assertThat(statistics().tasks(DAY)).isEqualTo(tasks);
    }

    @Test
    void nothingIsRecordedUnlessAskedFor() throws Exception {
        Worker worker = db.start(recording().statistics(false));
        db.scheduler().addJob(WORK, "x");
        events.await(JobCompleted.class);
        worker.stop();

        assertThat(count("pgworker_task_minutes")).isZero();
        assertThat(count("pgworker_samples")).isZero();
        assertThat(statistics().tasks(DAY)).isEmpty();
        assertThat(statistics().series(DAY, 3))
                .hasSize(3)
                .allMatch(point -> point.backlog() == null && point.run() == null);
    }

    @Test
    void argumentsOutOfRangeAreRefused() {
        assertThatThrownBy(() -> statistics().series(Duration.ofSeconds(59), 1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("window must be between 1 minute and 24 hours, but is PT59S");
        assertThatThrownBy(() -> statistics().tasks(DAY.plusNanos(1))).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> statistics().tasks(Duration.ofSeconds(Long.MIN_VALUE)))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> statistics().series(DAY, 0)).hasMessage("points must be between 1 and 1440, but is 0");
        assertThatThrownBy(() -> statistics().series(DAY, 1441)).isInstanceOf(IllegalArgumentException.class);
        assertThat(statistics().series(Duration.ofMinutes(1), 1440)).hasSize(1440);
        assertThat(statistics().series(DAY, 1440)).hasSize(1440);
    }

    @Test
    @Tag("thorough")
    void oneOfSeveralWorkersTakesTheSampleAndAnotherOneTheNext() throws Exception {
        db.scheduler().addJob("elsewhere", null);
        db.scheduler().addJob("elsewhere", null, JobSpec.builder().runIn(DAY).build());
        List<Worker> workers = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            workers.add(db.start(recording()));
        }
        await(() -> count("pgworker_samples") >= 1);

        BacklogSample sample = newest().backlog();
        assertThat(sample)
                .extracting(BacklogSample::ready, BacklogSample::scheduled, BacklogSample::failed)
                .containsExactly(1L, 1L, 0L);
        assertThat(sample.oldestDue()).isBetween(Duration.ZERO, Duration.ofMinutes(10));
        workers.get(0).stop();
        workers.get(1).stop();
        await(() -> count("pgworker_samples") >= 2);
        // All three have asked for the first, so that there would be several of them.
        assertThat(db.sql(
                                "select bool_and(s.gap >= interval '9 s') from (select taken_at - lag(taken_at)"
                                        + " over (order by taken_at) as gap from {schema}.pgworker_samples) s where s.gap is not null")
                        .query(Boolean.class)
                        .single())
                .isTrue();
    }

    private StatisticsPoint newest() {
        return statistics().series(Duration.ofHours(1), 12).stream()
                .filter(point -> point.backlog() != null)
                .reduce((first, second) -> second)
                .orElseThrow();
    }

    @Test
    void exactlyOneOfManyThatAskAtOnceIsElectedAndADeadOneHoldsNobodyUp() throws Exception {
        StatisticsStore store = new StatisticsStore(db.dataSource(), db.schema());
        for (int round = 1; round <= 5; round++) {
            assertThat(elected(store)).isEqualTo(1);
            assertThat(count("pgworker_samples")).isEqualTo(round);
            db.sql("update {schema}.pgworker_samples set taken_at = taken_at - interval '10 s'")
                    .update();
        }
        try (Connection sampler = DriverManager.getConnection(TestPostgres.jdbcUrl());
                Statement statement = sampler.createStatement()) {
            sampler.setAutoCommit(false);
            statement.execute(db.schema().in("select {schema}.pgworker_sample('9 s', '1 day')"));
            assertThat(elected(store)).isZero();
            db.sql("select pg_terminate_backend(?)")
                    .param(sampler.unwrap(PGConnection.class).getBackendPID())
                    .query()
                    .listOfRows();
        }
        await(() -> elected(store) == 1);
    }

    private static long elected(StatisticsStore store) {
        ExecutorService asking = Executors.newFixedThreadPool(6);
        try {
            CountDownLatch start = new CountDownLatch(1);
            List<Future<Boolean>> answers = new ArrayList<>();
            for (int i = 0; i < 6; i++) {
                answers.add(asking.submit(() -> {
                    start.await();
                    return store.sample(Duration.ofSeconds(9), DAY);
                }));
            }
            start.countDown();
            long elected = 0;
            for (Future<Boolean> answer : answers) {
                elected += answer.get() ? 1 : 0;
            }
            return elected;
        } catch (Exception e) {
            throw new IllegalStateException(e);
        } finally {
            asking.shutdown();
        }
    }

    @Test
    void aSampleOfTheFutureStopsNobody() throws Exception {
        db.sql("insert into {schema}.pgworker_samples values (now() + interval '1 day', 0, 0, 0, 0, null, 0)")
                .update();

        assertThat(new StatisticsStore(db.dataSource(), db.schema()).sample(Duration.ofSeconds(9), DAY))
                .isTrue();
    }

    @Test
    void whatIsOlderThanADayIsDeletedInChunks() throws Exception {
        db.sql("""
                insert into {schema}.pgworker_samples
                select now() - interval '1 day' + g * interval '1 s', 1, 0, 0, 0, null, 0 from generate_series(-1500, 1500) g where g <> 0
                """).update();
        db.sql("""
                insert into {schema}.pgworker_task_minutes
                select s, date_trunc('hour', now()) - g * interval '1 min', 't', 1, 0, 0, '{}', '{}' from generate_series(0, 6600) g,
                  unnest(array[0, 1, 60]) s where s < 60 or g % 60 = 0
                """).update();
        StatisticsStore store = new StatisticsStore(db.dataSource(), db.schema());

        assertThat(store.sample(Duration.ZERO, DAY)).isTrue();
        assertThat(count("pgworker_samples")).isEqualTo(2001);
        assertThat(store.sample(Duration.ZERO, DAY)).isTrue();

        assertThat(count("pgworker_samples")).isBetween(1490L, 1502L);
        assertThat(count("pgworker_task_minutes where span = 1")).isBetween(1_380L, 1_442L);
        assertThat(count("pgworker_task_minutes where span = 0")).isBetween(1_380L, 1_442L);
        assertThat(count("pgworker_task_minutes where span = 60")).isBetween(24L, 26L);
    }

    @Test
    void figuresOfADayAreThoseOfItsMinutesAndHours() {
        db.sql("""
                insert into {schema}.pgworker_task_minutes (span, begins_at, task, succeeded, retried, failed, run, waited, last_minute)
                select s, case s when 60 then date_trunc('hour', m at time zone 'UTC') at time zone 'UTC' else m end,
                  case s when 0 then '' else 't' end, count(*), 0, 0, array[(count(*) << 7) + 35], '{}', max(m)
                from (select date_trunc('minute', now()) - g * interval '1 min' as m from generate_series(0, 1500) g) m,
                  unnest(array[0, 1, 60]) s
                group by 1, 2, 3
                """).update();

        for (int minutes : new int[] {1, 5, 59, 60, 61, 119, 120, 600, 1440}) {
            assertThat(statistics().tasks(Duration.ofMinutes(minutes)))
                    .as(minutes + " minutes")
                    .singleElement()
                    .satisfies(task -> {
                        assertThat(task.succeeded()).isBetween((long) minutes, minutes + 2L);
                        assertThat(task.run().median()).isEqualTo(task.run().longest());
                    });
        }
        assertThat(statistics().series(DAY, 24)).allMatch(point -> point.succeeded() <= 60);
        assertThat(statistics().series(DAY, 24).subList(0, 23)).allMatch(point -> point.succeeded() == 60);
        assertThat(statistics().series(Duration.ofMinutes(1), 60).stream()
                        .mapToLong(StatisticsPoint::succeeded)
                        .sum())
                .isBetween(0L, 2L);
    }

    @Test
    void aViewerReadsThemOnAServerThatIsReadOnly() throws Exception {
        Worker worker = db.start(recording());
        db.scheduler().addJob(WORK, "x");
        events.await(JobCompleted.class);
        await(() -> count("pgworker_samples") == 1);
        worker.stop();
        String role = GuideRoles.create(db.dataSource(), db.schema(), "viewer");
        HikariConfig config = TestSchema.poolConfig(TestPostgres.jdbcUrl(), 2);
        config.setConnectionInitSql("set role " + role + "; set default_transaction_read_only = on");
        try (HikariDataSource viewer = new HikariDataSource(config)) {
            JobStatistics read = WorkerClient.jobQueries(viewer, db.schema()).statistics();

            assertThat(read.series(DAY, 10)).isEqualTo(statistics().series(DAY, 10));
            assertThat(read.tasks(DAY)).isEqualTo(statistics().tasks(DAY)).hasSize(1);
        } finally {
            db.sql("drop owned by " + role).update();
            db.sql("drop role " + role).update();
        }
    }

    @Test
    @Tag("thorough")
    void whatWasCountedDuringAnOutageIsNotLost() throws Exception {
        AtomicBoolean broken = new AtomicBoolean(true);
        CountDownLatch failed = new CountDownLatch(1);
        InterceptedDataSource breaking = new InterceptedDataSource(db.dataSource(), (call, proceed) -> {
            if (call.is("executeUpdate", "pgworker_task_minutes") && broken.get()) {
                failed.countDown();
                throw new SQLException("broken on purpose", "08006");
            }
            return proceed.proceed();
        });
        Worker worker = db.start(recording(Worker.builder(breaking).schema(db.schema())));
        db.scheduler().addJob(WORK, "x");
        assertThat(failed.await(120, TimeUnit.SECONDS)).isTrue();
        db.scheduler().addJob(WORK, "x");
        events.await(JobCompleted.class, 2);
        broken.set(false);

        await(() -> !statistics().tasks(DAY).isEmpty()
                && statistics().tasks(DAY).get(0).succeeded() == 2);
        worker.stop();
        assertThat(statistics().tasks(DAY).get(0).succeeded()).isEqualTo(2);
    }

    @Test
    void runOnceRecordsToo() throws Exception {
        db.scheduler().addJob(WORK, "x");

        recording().build().runOnce();

        assertThat(statistics().tasks(DAY))
                .extracting(TaskStatistics::succeeded)
                .containsExactly(1L);
        assertThat(statistics().tasks(DAY).get(0).run())
                .extracting(Quantiles::median)
                .isNotNull();
    }
}
