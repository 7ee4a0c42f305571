package dev.pgworker.internal.client;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.Worker;
import dev.pgworker.WorkerClient;
import dev.pgworker.WorkerSettings;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.event.WorkerEvent.WorkerStarted;
import dev.pgworker.job.CleanupResult;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Rescheduling;
import dev.pgworker.job.Task;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Removing what is no longer of use without harming those who use the rest. */
class CleanupTest {

    private static final Task<Integer> MAIL = Task.of("mail", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema(16);

    private final RecordingListener events = new RecordingListener();

    @Test
    void deletesUnusedQueuesAndKeepsLockedAndUsedOnes() {
        addToQueue("used");
        long failed = addToQueue("used by a failed job");
        db.changes().permanentlyFail(List.of(failed), "x");
        db.changes().complete(List.of(addToQueue("locked"), addToQueue("unused 1"), addToQueue("unused 2")));
        db.sql("update {schema}._private_job_queues set locked_at = now(), locked_by = 'w' where queue_name = 'locked'")
                .update();

        CleanupResult result = db.operations().cleanup(Set.of(CleanupTask.GC_JOB_QUEUES));

        assertThat(result).isEqualTo(new CleanupResult(Map.of(CleanupTask.GC_JOB_QUEUES, 2L), Set.of()));
        assertThat(queues()).containsExactly("locked", "used", "used by a failed job");
        assertThat(tasks()).containsExactly("mail");
    }

    @Test
    void deletesUnusedTasksAndKeepsThoseOfLiveWorkers() {
        db.scheduler().addJob("used");
        for (String task : List.of("unused", "of a live worker", "of a dead worker", "of a worker without metadata")) {
            db.changes().complete(List.of(db.scheduler().addJob(task).id()));
        }
        heartbeat("live", "{\"tasks\": [\"of a live worker\"]}", "50 minutes");
        heartbeat("dead", "{\"tasks\": [\"of a dead worker\"]}", "61 minutes");
        heartbeat("odd", "{\"tasks\": 5}", "0 minutes");
        heartbeat("odder", "{\"tasks\": [null, 7]}", "0 minutes");
        heartbeat("silent", null, "0 minutes");

        CleanupResult result = db.operations().cleanup(Set.of(CleanupTask.GC_TASK_IDENTIFIERS));

        assertThat(result.deleted(CleanupTask.GC_TASK_IDENTIFIERS)).isEqualTo(3);
        assertThat(tasks()).containsExactly("of a live worker", "used");
    }

    @Test
    void keepsTheTasksOfARunningWorker() {
        start(Duration.ofHours(1), new AtomicInteger());
        Awaitility.await()
                .until(() -> db.sql(
                                "select count(*) from {schema}._private_workers where metadata -> 'tasks' is not null")
                        .query(Integer.class)
                        .single()
                        .equals(1));
        db.changes().complete(List.of(db.scheduler().addJob("other").id()));

        assertThat(db.operations().cleanup(EnumSet.allOf(CleanupTask.class)).deleted(CleanupTask.GC_TASK_IDENTIFIERS))
                .isEqualTo(1);

        db.scheduler().addJob(MAIL, 1);
        events.await(JobCompleted.class);
    }

    @Test
    void aRunningWorkerSurvivesTheLossOfItsTaskRow() {
        start(Duration.ofMillis(50), new AtomicInteger());
        db.sql("delete from {schema}._private_tasks").update();

        long id = db.scheduler().addJob(MAIL, 1).id();

        assertThat(events.await(JobCompleted.class).job().id()).isEqualTo(id);
    }

    @Test
    void deletesPermanentlyFailedJobsThatNobodyHoldsInChunks() {
        db.sql("""
                insert into {schema}._private_jobs (task_id, attempts, locked_at, locked_by, key)
                select 1, case when i % 2 = 0 then 25 else 24 end, case when i % 100 = 0 then now() end,
                  case when i % 100 = 0 then 'w' end, i::text
                from generate_series(1, 24000) i""").update();

        CleanupResult result = db.operations().cleanup(Set.of(CleanupTask.DELETE_PERMAFAILED_JOBS));

        assertThat(result.deleted(CleanupTask.DELETE_PERMAFAILED_JOBS)).isEqualTo(12_000 - 240);
        assertThat(db.jobs()).isEqualTo(12_240);
        assertThat(db.sql("select count(*) from {schema}._private_jobs where attempts = 25 and locked_at is null")
                        .query(Long.class)
                        .single())
                .isZero();
    }

    @Test
    void failedJobsThatSomebodyIsReschedulingAreLeftAlone() throws Exception {
        long kept = addToQueue("lane");
        db.changes().permanentlyFail(List.of(kept), "x");
        new TransactionTemplate(new JdbcTransactionManager(db.dataSource())).executeWithoutResult(status -> {
            db.changes()
                    .reschedule(
                            List.of(kept), Rescheduling.builder().attempts(0).build());
            assertThat(inAnotherThread(() -> db.operations().cleanup(Set.of(CleanupTask.DELETE_PERMAFAILED_JOBS)))
                            .deleted(CleanupTask.DELETE_PERMAFAILED_JOBS))
                    .isZero();
        });
        assertThat(db.queries().find(kept)).isPresent();
    }

    @Test
    void whatFailedJobsUsedGoesWithThem() {
        db.changes().permanentlyFail(List.of(addToQueue("lane")), "x");

        CleanupResult result = db.operations().cleanup(EnumSet.allOf(CleanupTask.class));

        assertThat(result.deleted())
                .isEqualTo(Map.of(
                        CleanupTask.DELETE_PERMAFAILED_JOBS, 1L,
                        CleanupTask.DELETE_ENDED_SCHEDULES, 0L,
                        CleanupTask.GC_JOB_QUEUES, 1L,
                        CleanupTask.GC_TASK_IDENTIFIERS, 1L));
        assertThat(result.skipped()).isEmpty();
    }

    @Test
    void isSkippedWhileATransactionThatAddedAJobIsOpenAndOthersHardlyNotice() throws Exception {
        db.changes().complete(List.of(addToQueue("lane")));
        Set<CleanupTask> both = EnumSet.of(CleanupTask.GC_JOB_QUEUES, CleanupTask.GC_TASK_IDENTIFIERS);
        try (Connection application = db.dataSource().getConnection()) {
            application.setAutoCommit(false);
            try (Statement statement = application.createStatement()) {
                statement.execute(db.schema().in("select {schema}.add_job('mail', queue_name => 'lane')"));
            }
            assertThat(db.operations().cleanup(both)).isEqualTo(new CleanupResult(Map.of(), both));
            application.commit();
        }
        assertThat(db.sql("select queue_name || ' ' || task_identifier from {schema}.jobs")
                        .query(String.class)
                        .list())
                .containsExactly("lane mail");
    }

    @Test
    void theCallersOwnTransactionIsNeitherEndedNorWaitedForLong() {
        TransactionAwareDataSourceProxy proxy = new TransactionAwareDataSourceProxy(db.dataSource());
        db.changes().complete(List.of(addToQueue("lane")));
        new TransactionTemplate(new JdbcTransactionManager(db.dataSource())).executeWithoutResult(status -> {
            addToQueue("lane");
            CleanupResult result =
                    WorkerClient.workerOperations(proxy, db.schema()).cleanup(Set.of(CleanupTask.GC_JOB_QUEUES));
            assertThat(result.skipped()).containsExactly(CleanupTask.GC_JOB_QUEUES);
            status.setRollbackOnly();
        });
        assertThat(db.jobs()).isZero();
    }

    @Test
    void anOlderSnapshotCannotAddAJobUnderADeletedName() throws Exception {
        for (String add : List.of(
                "select {schema}.add_job('mail', queue_name => 'gone')",
                "select {schema}.add_jobs(array[('gone', null, null, null, null, null, null, null)::{schema}.job_spec])")) {
            db.sql("insert into {schema}._private_job_queues (queue_name) values ('gone')")
                    .update();
            db.sql("select {schema}.pgworker_task_ids(array['mail', 'gone'])")
                    .query()
                    .listOfRows();
            try (Connection connection = db.dataSource().getConnection()) {
                connection.setAutoCommit(false);
                connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
                connection.createStatement().execute("select 1");
                connection.createStatement().execute("select count(*) from pg_class");
                db.operations().cleanup(EnumSet.of(CleanupTask.GC_JOB_QUEUES, CleanupTask.GC_TASK_IDENTIFIERS));

                assertThatThrownBy(() ->
                                connection.createStatement().execute(db.schema().in(add)))
                        .isInstanceOfSatisfying(
                                SQLException.class,
                                e -> assertThat(e.getSQLState()).isEqualTo("40001"));
                connection.rollback();
            }
            assertThat(db.sql("select count(*) from {schema}._private_jobs")
                            .query(Long.class)
                            .single())
                    .isZero();
        }
    }

    @Test
    void aPoolThatDefaultsToRepeatableReadIsServedToo() {
        HikariConfig config = TestSchema.poolConfig(TestPostgres.jdbcUrl(), 2);
        config.setTransactionIsolation("TRANSACTION_REPEATABLE_READ");
        config.setAutoCommit(false);
        db.changes().complete(List.of(addToQueue("lane")));

        try (HikariDataSource pool = new HikariDataSource(config)) {
            WorkerOperations operations = WorkerClient.workerOperations(pool, db.schema());
            assertThat(operations.cleanup(Set.of(CleanupTask.GC_JOB_QUEUES)).deleted(CleanupTask.GC_JOB_QUEUES))
                    .isEqualTo(1);
        }
    }

    @Test
    @Tag("thorough")
    void racesWithAddersAndWorkersWithoutLosingAJob() throws Exception {
        int adders = 4;
        int rounds = 1_000;
        Map<Integer, Integer> runs = new ConcurrentHashMap<>();
        Worker.Builder builder = db.worker()
                .settings(WorkerSettings.builder()
                        .concurrency(4)
                        .pollInterval(Duration.ofMillis(100))
                        .build());
        for (int task = 0; task < 20; task++) {
            builder.task(
                    Task.of("task" + task, Integer.class), (payload, context) -> runs.merge(payload, 1, Integer::sum));
        }
        CleanupResult last = null;
        long deleted = 0;
        int cleanups = 0;
        ExecutorService threads = Executors.newFixedThreadPool(adders);
        try {
            List<Future<?>> adding = new ArrayList<>();
            for (int adder = 0; adder < adders; adder++) {
                int first = adder * rounds;
                adding.add(threads.submit(() -> {
                    for (int i = first; i < first + rounds; i++) {
                        // Few names, often without a job: each is deleted and made anew again and again.
                        JobSpec spec = JobSpec.builder()
                                .queueName("queue" + i % 40)
                                .jobKey(i % 3 == 0 ? "key" + i : null)
                                .build();
                        if (i % 2 == 0) {
                            db.scheduler().addJob("task" + i % 20, i, spec);
                        } else {
                            db.scheduler().addJobs(List.of(JobRequest.of("task" + i % 20, i, spec)));
                        }
                        if (i % 10 == 0) {
                            builder.build().runOnce();
                        }
                    }
                    return null;
                }));
            }
            while (!adding.stream().allMatch(Future::isDone)) {
                last = db.operations().cleanup(EnumSet.allOf(CleanupTask.class));
                cleanups++;
                deleted += last.deleted(CleanupTask.GC_JOB_QUEUES) + last.deleted(CleanupTask.GC_TASK_IDENTIFIERS);
            }
            for (Future<?> future : adding) {
                future.get();
            }
        } finally {
            threads.shutdownNow();
        }
        assertThat(db.sql("""
                        select count(*) from {schema}._private_jobs j
                        where not exists (select from {schema}._private_tasks t where t.id = j.task_id)
                           or not exists (select from {schema}._private_job_queues q where q.id = j.job_queue_id)""").query(Long.class).single()).isZero();
        builder.build().runOnce();
        assertThat(db.jobs()).isZero();
        assertThat(runs).hasSize(adders * rounds);
        assertThat(runs.values()).containsOnly(1);
        System.out.println(cleanups + " cleanups deleted " + deleted + " rows during " + adders * rounds + " adds");
        assertThat(deleted).isGreaterThan(50);
    }

    private void start(Duration pollInterval, AtomicInteger runs) {
        db.start(db.worker()
                .settings(WorkerSettings.builder().pollInterval(pollInterval).build())
                .listener(events)
                .task(MAIL, (payload, context) -> runs.incrementAndGet()));
        events.await(WorkerStarted.class);
        events.await(ListenerConnected.class);
    }

    private long addToQueue(String queue) {
        return db.scheduler()
                .addJob("mail", 1, JobSpec.builder().queueName(queue).build())
                .id();
    }

    private void heartbeat(String worker, String metadata, String ago) {
        db.sql("insert into {schema}._private_workers (id, last_heartbeat_at, metadata)"
                        + " values (?, now() - ?::interval, ?::jsonb)")
                .params(java.util.Arrays.asList(worker, ago, metadata))
                .update();
    }

    private static <T> T inAnotherThread(java.util.concurrent.Callable<T> work) {
        ExecutorService thread = Executors.newSingleThreadExecutor();
        try {
            return thread.submit(work).get();
        } catch (Exception e) {
            throw new AssertionError(e);
        } finally {
            thread.shutdownNow();
        }
    }

    private List<String> queues() {
        return db.sql("select queue_name from {schema}._private_job_queues order by 1")
                .query(String.class)
                .list();
    }

    private List<String> tasks() {
        return db.sql("select identifier from {schema}._private_tasks order by 1")
                .query(String.class)
                .list();
    }
}
