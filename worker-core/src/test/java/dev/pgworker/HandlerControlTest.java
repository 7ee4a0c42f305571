package dev.pgworker;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import javax.sql.DataSource;

import org.assertj.core.data.Offset;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.core.ParameterizedTypeReference;
import org.springframework.core.retry.RetryPolicy;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.util.backoff.ExponentialBackOff;
import org.springframework.util.backoff.FixedBackOff;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.JobLost;
import dev.pgworker.event.WorkerEvent.JobReturned;
import dev.pgworker.event.WorkerEvent.JobSnoozed;
import dev.pgworker.event.WorkerEvent.JobSuperseded;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.event.WorkerEvent.WorkerStarted;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.task.BatchResult;
import dev.pgworker.task.HandlerDefinitionException;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.JobTimeoutException;
import dev.pgworker.task.RetryDelay;
import dev.pgworker.task.TaskHandler;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.LogCapture;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestJob;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** What a handler can make of its job besides success and failure. */
@Tag("any-postgres")
class HandlerControlTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);
    private static final Task<List<Integer>> BATCH = Task.of("batch", new ParameterizedTypeReference<>() {});

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();

    @Test
    void aJobMayFailPermanentlyWithAttemptsLeft() {
        start(WORK, TaskOptions.DEFAULT, (n, context) -> {
            throw JobControlException.failPermanently("no such thing");
        });
        db.scheduler().addJob(WORK, 1);

        assertThat(events.await(JobFailed.class).permanently()).isTrue();
        assertThat(row())
                .containsEntry("attempts", 1)
                .containsEntry("max_attempts", 1)
                .hasEntrySatisfying("last_error", e -> assertThat((String) e).contains("no such thing"));
    }

    @Test
    void aJobMayBeRetriedAfterADelayOrAtAnInstant() {
        Instant at = Instant.parse("2100-01-01T00:00:00.123456Z");
        start(WORK, TaskOptions.DEFAULT, (n, context) -> {
            throw n == 1
                    ? JobControlException.retryIn(Duration.ofSeconds(90), "busy", null)
                    : JobControlException.retryAt(at, "later", null);
        });

        db.scheduler().addJob(WORK, 1);
        events.await(JobFailed.class);
        assertThat(row()).containsEntry("attempts", 1);
        assertThat(delay()).isCloseTo(90, Offset.offset(0.5));

        clear();
        db.scheduler().addJob(WORK, 2);
        events.await(JobFailed.class, 2);
        assertThat(db.sql("select run_at from {schema}.jobs")
                        .query(Instant.class)
                        .single())
                .isEqualTo(at);
    }

    @Test
    void aSnoozeCostsNoAttemptAndLeavesNoError() {
        start(WORK, TaskOptions.DEFAULT, (n, context) -> {
            throw JobControlException.snoozeFor(Duration.ofSeconds(60));
        });
        db.scheduler().addJob(WORK, 1);

        events.await(JobSnoozed.class);
        assertThat(row()).containsEntry("attempts", 0).containsEntry("last_error", null);
        assertThat(delay()).isCloseTo(60, Offset.offset(0.5));
        assertThat(events.all(JobFailed.class)).isEmpty();
    }

    @Test
    void theLastAttemptOfAHandlerIsFinal() {
        start(WORK, TaskOptions.DEFAULT.withMaxAttempts(1), (n, context) -> {
            throw new IllegalStateException("no");
        });
        db.scheduler().addJob(WORK, 1);

        assertThat(events.await(JobFailed.class).permanently()).isTrue();
        assertThat(row()).containsEntry("attempts", 1).containsEntry("max_attempts", 1);
    }

    @Test
    void aRetryDelayDecidesTheDelayAndMayFail() {
        AtomicInteger calls = new AtomicInteger();
        RetryDelay policy = (job, error) -> {
            assertThat(error).hasMessage("no");
            if (calls.getAndIncrement() > 0) {
                throw new IllegalStateException("on purpose");
            }
            return Duration.ofSeconds(33);
        };
        start(WORK, TaskOptions.DEFAULT.withRetryDelay(policy), (n, context) -> {
            throw new IllegalStateException("no");
        });

        db.scheduler().addJob(WORK, 1);
        events.await(JobFailed.class);
        assertThat(delay()).isCloseTo(33, Offset.offset(0.5));

        clear();
        db.scheduler().addJob(WORK, 1);
        events.await(JobFailed.class, 2);
        assertThat(delay()).isCloseTo(Math.E, Offset.offset(0.5));
    }

    private static Duration delay(RetryDelay delays, int attempt) {
        return delays.delay(TestJob.withId(1).attempts(attempt).build(), new RuntimeException());
    }

    @Test
    void delaysAreSpreadByATenth() {
        RetryDelay exponential = RetryDelay.exponential(Duration.ofSeconds(2), 3, Duration.ofSeconds(60));
        RetryDelay fixed = RetryDelay.fixed(Duration.ofSeconds(7));
        Set<Duration> seen = new HashSet<>();
        for (int i = 0; i < 100; i++) {
            for (var expected :
                    Map.of(1, 2, 2, 6, 3, 18, 4, 54, 5, 60, 1000, 60).entrySet()) {
                Duration exact = Duration.ofSeconds(expected.getValue());
                assertThat(delay(exponential, expected.getKey()))
                        .isBetween(
                                exact.multipliedBy(9).dividedBy(10),
                                exact.multipliedBy(11).dividedBy(10))
                        .isLessThanOrEqualTo(Duration.ofSeconds(60));
            }
            assertThat(delay(fixed, 3)).isBetween(Duration.ofMillis(6300), Duration.ofMillis(7700));
            seen.add(delay(fixed, 3));
        }
        assertThat(seen).hasSizeGreaterThan(50);
        assertThatThrownBy(() -> RetryDelay.fixed(Duration.ofSeconds(-1))).hasMessageContaining("delay");
    }

    @Test
    void jitterWithOnesOwnRandomNumbersIsRepeatable() {
        RetryDelay exact = (job, error) -> Duration.ofSeconds(100);
        assertThat(delay(exact.withJitter(0.5, new Random(7)), 1))
                .isEqualTo(delay(exact.withJitter(0.5, new Random(7)), 1))
                .isBetween(Duration.ofSeconds(50), Duration.ofSeconds(150));
        assertThat(delay(exact.withJitter(0), 1)).isEqualTo(Duration.ofSeconds(100));
        RetryDelay never = (job, error) -> RetryDelay.NEVER;
        assertThat(delay(never.withJitter(1), 1)).isEqualTo(RetryDelay.NEVER);
        assertThatThrownBy(() -> exact.withJitter(1.1)).hasMessageContaining("fraction");
        assertThatThrownBy(() -> exact.withJitter(Double.NaN)).hasMessageContaining("fraction");
    }

    @Test
    void backOffsAndPoliciesOfSpringAreDelays() {
        RetryDelay fixed = RetryDelay.of(new FixedBackOff(500, 2));
        assertThat(delay(fixed, 1)).isEqualTo(Duration.ofMillis(500));
        assertThat(delay(fixed, 2)).isEqualTo(Duration.ofMillis(500));
        assertThat(delay(fixed, 3)).isEqualTo(RetryDelay.NEVER);
        assertThat(delay(RetryDelay.of(new ExponentialBackOff(100, 2)), 4)).isEqualTo(Duration.ofMillis(800));

        RetryDelay policy = RetryDelay.of(RetryPolicy.builder()
                .excludes(IllegalStateException.class)
                .delay(Duration.ofSeconds(3))
                .maxRetries(1)
                .build());
        Job job = TestJob.withId(1).attempts(1).build();
        assertThat(policy.delay(job, new RuntimeException())).isEqualTo(Duration.ofSeconds(3));
        assertThat(policy.delay(job, new IllegalStateException())).isEqualTo(RetryDelay.NEVER);
        assertThat(delay(policy, 2)).isEqualTo(RetryDelay.NEVER);
    }

    @Test
    void neverFailsTheJobPermanently() {
        start(WORK, TaskOptions.DEFAULT.withRetryDelay((job, error) -> RetryDelay.NEVER), (n, context) -> {
            throw new IllegalStateException("no");
        });
        db.scheduler().addJob(WORK, 1);

        assertThat(events.await(JobFailed.class).permanently()).isTrue();
        assertThat(row()).containsEntry("attempts", 1).containsEntry("max_attempts", 1);
    }

    @Test
    void theLogTellsTheMaximumThatCounts() {
        try (LogCapture log = new LogCapture("dev.pgworker.internal.engine.complete")) {
            start(WORK, TaskOptions.DEFAULT.withMaxAttempts(4), (n, context) -> {
                throw new IllegalStateException("no");
            });
            db.scheduler().addJob(WORK, 1);
            events.await(JobFailed.class);
            assertThat(log.warnings())
                    .anySatisfy(line -> assertThat(line).contains("(work, attempt 1/4) failed and will be retried"));
        }
    }

    @Test
    void aTimeoutInterruptsTheHandlerAndFailsTheAttempt() {
        AtomicReference<Boolean> told = new AtomicReference<>();
        start(WORK, TaskOptions.DEFAULT.withTimeout(Duration.ofMillis(50)), (n, context) -> {
            try {
                new CountDownLatch(1).await();
            } finally {
                told.set(context.isInterrupted());
            }
        });
        db.scheduler().addJob(WORK, 1);

        assertThat(events.await(JobFailed.class).error())
                .isInstanceOf(JobTimeoutException.class)
                .hasCauseInstanceOf(InterruptedException.class);
        assertThat(told).hasValue(true);
        assertThat(row()).containsEntry("attempts", 1);
    }

    @Test
    void aSwallowedTimeoutFailsTheAttemptAndSparesTheNextJob() {
        List<Boolean> interrupted = new CopyOnWriteArrayList<>();
        var registration = TaskRegistration.of(WORK, (n, context) -> {
            interrupted.add(Thread.currentThread().isInterrupted());
            if (n == 1) {
                while (!context.isInterrupted()) {
                    Thread.onSpinWait();
                }
            }
        });
        // One thread that, unlike a thread pool, does not clear the flag itself.
        BlockingQueue<Runnable> tasks = new LinkedBlockingQueue<>();
        AtomicBoolean ended = new AtomicBoolean();
        Thread handlerThread = new Thread(() -> {
            while (!ended.get()) {
                Runnable task = tasks.poll();
                if (task != null) {
                    task.run();
                }
                Thread.onSpinWait();
            }
        });
        handlerThread.setDaemon(true);
        handlerThread.start();
        started(db.worker()
                .handlerExecutor(tasks::add)
                .tasks(List.of(registration.with(TaskOptions.DEFAULT.withTimeout(Duration.ofMillis(50))))));
        db.scheduler().addJob(WORK, 1);
        assertThat(events.await(JobFailed.class).error()).isInstanceOf(JobTimeoutException.class);

        db.scheduler().addJob(WORK, 2);
        events.await(JobCompleted.class);
        assertThat(interrupted).containsOnly(false);
        ended.set(true);
    }

    @Test
    @Tag("thorough")
    void aHandlerThatIgnoresItsTimeoutDoesNotBlockTheWorker() {
        CountDownLatch mayEnd = new CountDownLatch(1);
        start(WORK, TaskOptions.DEFAULT.withTimeout(Duration.ofMillis(50)), (n, context) -> {
            while (n == 1 && mayEnd.getCount() > 0) {
                Thread.onSpinWait();
            }
        });
        db.scheduler().addJob(WORK, 1);
        db.scheduler().addJob(WORK, 2);

        assertThat(events.await(JobFailed.class).error()).isInstanceOf(JobTimeoutException.class);
        assertThat(events.await(JobCompleted.class).job().payload()).isEqualTo("2");
        mayEnd.countDown();
    }

    @Test
    void aTransactionalHandlerCommitsWithItsJobOrNotAtAll() {
        db.sql("create table {schema}.effects (n int)").update();
        AtomicInteger runs = new AtomicInteger();
        startTransactional((n, context) -> {
            assertThat(TransactionSynchronizationManager.isActualTransactionActive())
                    .isTrue();
            effect(n);
            context.addJob("other", n);
            if (runs.getAndIncrement() == 0) {
                throw JobControlException.retryIn(Duration.ZERO, "crash between effect and completion", null);
            }
        });
        db.scheduler().addJob(WORK, 7);

        events.await(JobCompleted.class);
        assertThat(runs).hasValue(2);
        assertThat(effects()).containsExactly(7);
        assertThat(db.sql("select count(*) from {schema}.jobs where task_identifier = 'other'")
                        .query(Integer.class)
                        .single())
                .isEqualTo(1);
    }

    @Test
    void aConnectionCutBetweenEffectAndCompletionLeavesNoEffectAndTheJobRunsAgain() {
        db.sql("create table {schema}.effects (n int)").update();
        AtomicInteger runs = new AtomicInteger();
        startTransactional((n, context) -> {
            effect(n);
            if (runs.getAndIncrement() == 0) {
                int backend = JdbcClient.create(db.dataSource())
                        .sql("select pg_backend_pid()")
                        .query(Integer.class)
                        .single();
                JdbcClient.create(new DriverManagerDataSource(TestPostgres.jdbcUrl()))
                        .sql("select pg_terminate_backend(?)")
                        .param(backend)
                        .query()
                        .singleRow();
            }
        });
        // Retried by the usual back-off of 2.7 s.
        db.scheduler().addJob(WORK, 7);

        events.await(JobFailed.class);
        assertThat(effects()).isEmpty();
        events.await(JobCompleted.class);
        assertThat(effects()).containsExactly(7);
    }

    @Test
    void aTransactionalHandlerWhoseJobWasTakenAwayLeavesNoEffect() {
        db.sql("create table {schema}.effects (n int)").update();
        startTransactional((n, context) -> {
            effect(n);
            try (var own = db.dataSource().getConnection()) {
                own.createStatement()
                        .execute(db.schema().in("update {schema}._private_jobs set locked_by = 'another'"));
            }
        });
        db.scheduler().addJob(WORK, 7);

        events.await(JobLost.class);
        assertThat(effects()).isEmpty();
        assertThat(row()).containsEntry("locked_by", "another");
    }

    /** Its commit or rollback would say nothing about the completion, which would be committed at once. */
    @Test
    void aTransactionManagerOfAnotherDataSourceCompletesNothing() {
        DataSource other = new DriverManagerDataSource(TestPostgres.jdbcUrl());
        started(db.worker()
                .transactionManager(new JdbcTransactionManager(other))
                .tasks(List.of(TaskRegistration.of(WORK, (n, context) -> {})
                        .with(TaskOptions.DEFAULT.withTransactional(true)))));
        db.scheduler().addJob(WORK, 7);

        events.await(JobFailed.class);
        assertThat(row().get("last_error"))
                .asString()
                .contains("The transaction manager does not manage the worker's data source");
    }

    @Test
    void transactionalJobsOfAQueueRunBackToBack() {
        db.sql("create table {schema}.effects (n int)").update();
        for (int i = 0; i < 50; i++) {
            db.scheduler().addJob(WORK, i, JobSpec.builder().queueName("serial").build());
        }
        startTransactional((n, context) -> effect(n));

        events.await(JobCompleted.class, 50);
        assertThat(effects()).hasSize(50).isSorted();
        Awaitility.await()
                .until(() -> db.sql("select count(*) from {schema}._private_job_queues where locked_by is not null")
                                .query(Integer.class)
                                .single()
                        == 0);
    }

    @Test
    void aTransactionalHandlerNeedsATransactionManager() {
        var registration =
                TaskRegistration.of(WORK, (n, context) -> {}).with(TaskOptions.DEFAULT.withTransactional(true));

        assertThatThrownBy(() -> db.worker().tasks(List.of(registration)).build())
                .isInstanceOf(HandlerDefinitionException.class)
                .hasMessageContaining("transaction manager");
    }

    @Test
    void onlyFailedItemsOfABatchStayForTheRetry() {
        List<List<Integer>> seen = new CopyOnWriteArrayList<>();
        startBatch(items -> {
            seen.add(items);
            return BatchResult.forEach(items, i -> {
                if (i % 2 == 0 && seen.size() == 1) {
                    throw new IllegalStateException("even " + i);
                }
            });
        });
        db.scheduler().addBatchJob(BATCH, List.of(1, 2, 3, 4));

        events.await(JobFailed.class);
        assertThat(row())
                .containsEntry("attempts", 1)
                .hasEntrySatisfying(
                        "last_error",
                        e -> assertThat((String) e)
                                .contains("2 of 4 items failed")
                                .contains("even 2"));
        db.sql("select {schema}.reschedule_jobs(array(select id from {schema}.jobs), run_at => now())")
                .query()
                .singleRow();

        events.await(JobCompleted.class);
        assertThat(seen).containsExactly(List.of(1, 2, 3, 4), List.of(2, 4));
    }

    @Test
    void failedItemsAndThoseAddedMeanwhileStayInTheBatch() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        List<Integer> succeeded = new CopyOnWriteArrayList<>();
        AtomicInteger runs = new AtomicInteger();
        startBatch(items -> {
            boolean first = runs.getAndIncrement() == 0;
            if (first) {
                started.countDown();
                mayEnd.await();
            }
            return BatchResult.forEach(items, i -> {
                if (first && i == 2) {
                    throw new IllegalStateException("on purpose");
                }
                succeeded.add(i);
            });
        });
        JobSpec keyed = JobSpec.builder()
                .jobKey("k")
                .jobKeyMode(JobKeyMode.PRESERVE_RUN_AT)
                .build();
        db.scheduler().addBatchJob(BATCH, List.of(1, 2), keyed);
        started.await();
        db.scheduler().addBatchJob(BATCH, List.of(3), keyed);
        mayEnd.countDown();

        events.await(JobFailed.class);
        events.await(JobCompleted.class, 1);
        db.sql("select {schema}.reschedule_jobs(array(select id from {schema}.jobs), run_at => now())")
                .query()
                .listOfRows();
        events.await(JobCompleted.class, 2);
        assertThat(succeeded).containsExactlyInAnyOrder(1, 2, 3);
        assertThat(db.jobs()).isZero();
    }

    @Test
    void aRemovedBatchDoesNotComeBackWithItsFailedItems() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        startBatch(items -> {
            started.countDown();
            mayEnd.await();
            return BatchResult.of(List.of(new IllegalStateException("on purpose")));
        });
        db.scheduler()
                .addBatchJob(BATCH, List.of(1), JobSpec.builder().jobKey("k").build());
        started.await();
        db.sql("select {schema}.remove_job('k')").query().singleRow();
        mayEnd.countDown();

        events.await(JobSuperseded.class);
        assertThat(row()).containsEntry("attempts", 25).containsEntry("locked_by", null);
        assertThat(events.all(JobFailed.class)).isEmpty();
    }

    @Test
    void aBatchResultOfTheWrongLengthFailsTheWholeJob() {
        startBatch(items -> BatchResult.of(new ArrayList<>()));
        db.scheduler().addBatchJob(BATCH, List.of(1, 2));

        assertThat(events.await(JobFailed.class).error()).hasMessageContaining("0 results for 2 items");
        assertThat(db.sql("select payload::text from {schema}._private_jobs")
                        .query(String.class)
                        .single())
                .isEqualTo("[1,2]");
    }

    @Test
    void aBatchWithoutItemsIsRefusedWhenAddedAndFailsClearlyWhenRun() {
        assertThatThrownBy(() -> db.scheduler().addBatchJob(BATCH, List.of()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("items");
        startBatch(items -> BatchResult.forEach(items, i -> {}));

        db.scheduler().addJob("batch", Map.of("a", 1));
        assertThat(events.await(JobFailed.class).error()).hasMessageContaining("must be an array of at least one item");
        db.scheduler().addJob("batch", List.of());
        assertThat(events.await(JobFailed.class, 2).get(1).error()).hasMessageContaining("empty");
    }

    @Test
    void anInterruptedBatchKeepsWhatIsLeftWithoutCountingTheAttempt() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        Worker worker = db.start(db.worker()
                .settings(WorkerSettings.builder()
                        .shutdownGracePeriod(Duration.ofMillis(20))
                        .build())
                .batchTask(
                        BATCH,
                        (items, context) -> BatchResult.forEach(items, i -> {
                            if (i == 2) {
                                started.countDown();
                                new CountDownLatch(1).await();
                            }
                        }))
                .listener(events));
        db.scheduler().addBatchJob(BATCH, List.of(1, 2, 3));
        started.await();

        worker.stop();

        assertThat(events.all(JobReturned.class)).hasSize(1);
        assertThat(row()).containsEntry("attempts", 0);
        assertThat(db.sql("select payload::text from {schema}._private_jobs")
                        .query(String.class)
                        .single())
                .isEqualTo("[2,3]");
    }

    @Test
    void forbiddenFlagsAreAskedAtEachFetchAndSkippedJobsKeepTheirAttempts() {
        AtomicReference<List<String>> forbidden = new AtomicReference<>(List.of("slow"));
        db.start(db.worker()
                .settings(WorkerSettings.builder()
                        .pollInterval(Duration.ofHours(1))
                        .build())
                .forbiddenFlags(forbidden::get)
                .listener(events)
                .task(WORK, (n, context) -> {}));
        events.await(ListenerConnected.class);
        JobSpec.Builder queued = JobSpec.builder().queueName("q");
        db.scheduler().addJob(WORK, 1, JobSpec.builder().flags("slow", "x").build());
        db.scheduler().addJob(WORK, 2, JobSpec.builder().flags("x").build());
        db.scheduler().addJob(WORK, 3, queued.flags("slow").build());
        db.scheduler().addJob(WORK, 4, queued.flags(List.of()).build());

        assertThat(events.await(JobCompleted.class, 2))
                .extracting(e -> e.job().payload())
                .containsExactlyInAnyOrder("2", "4");
        assertThat(db.sql("select distinct attempts from {schema}.jobs")
                        .query(Integer.class)
                        .single())
                .isZero();

        forbidden.set(List.of());
        db.scheduler().addJob(WORK, 5);
        events.await(JobCompleted.class, 5);
    }

    @Test
    @Tag("thorough")
    void whileTheSupplierOfForbiddenFlagsFailsNothingIsClaimed() {
        AtomicInteger calls = new AtomicInteger();
        db.scheduler().addJob(WORK, 1);
        db.start(db.worker()
                .forbiddenFlags(() -> {
                    if (calls.getAndIncrement() < 3) {
                        throw new IllegalStateException("on purpose");
                    }
                    return List.of();
                })
                .listener(events)
                .task(WORK, (n, context) -> {}));

        events.await(JobCompleted.class);
        assertThat(calls.get()).isGreaterThan(3);
    }

    @FunctionalInterface
    interface BatchWork {
        BatchResult run(List<Integer> items) throws Exception;
    }

    private void startBatch(BatchWork work) {
        started(db.worker().batchTask(BATCH, (items, context) -> work.run(items)));
    }

    private void start(Task<Integer> task, TaskOptions options, TaskHandler<Integer> handler) {
        started(db.worker().tasks(List.of(TaskRegistration.of(task, handler).with(options))));
    }

    private void startTransactional(TaskHandler<Integer> handler) {
        started(db.worker()
                .transactionManager(new JdbcTransactionManager(db.dataSource()))
                .tasks(List.of(TaskRegistration.of(WORK, handler).with(TaskOptions.DEFAULT.withTransactional(true)))));
    }

    private void started(Worker.Builder builder) {
        db.start(builder.settings(WorkerSettings.builder()
                        .concurrency(1)
                        .shutdownGracePeriod(Duration.ofMillis(100))
                        .build())
                .listener(events));
        events.await(WorkerStarted.class);
        events.await(ListenerConnected.class);
    }

    private void effect(int n) {
        JdbcClient.create(db.dataSource())
                .sql(db.schema().in("insert into {schema}.effects values (?)"))
                .param(n)
                .update();
    }

    private List<Integer> effects() {
        return db.sql("select n from {schema}.effects").query(Integer.class).list();
    }

    private Map<String, Object> row() {
        return db.sql("select attempts, max_attempts, last_error, locked_by from {schema}.jobs")
                .query()
                .singleRow();
    }

    private double delay() {
        return db.sql("select extract(epoch from run_at - updated_at) from {schema}.jobs")
                .query(Double.class)
                .single();
    }

    private void clear() {
        db.sql("delete from {schema}._private_jobs").update();
    }
}
