package dev.pgworker;

import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.JobLost;
import dev.pgworker.event.WorkerEvent.JobReturned;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.event.WorkerEvent.WorkerStarted;
import dev.pgworker.event.WorkerEvent.WorkerStopped;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** The way of a job through a running worker. */
class WorkerTest {

    private static final Task<Greeting> HELLO = Task.of("hello", Greeting.class);
    private static final WorkerSettings.Builder NEVER_POLL =
            WorkerSettings.builder().pollInterval(Duration.ofHours(1));

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();

    record Greeting(String name) {}

    @Test
    void runsAnAddedJobAndDeletesIt() {
        List<String> names = new CopyOnWriteArrayList<>();
        startListening(db.worker().task(HELLO, (greeting, context) -> names.add(greeting.name())));

        Job added = db.scheduler().addJob(HELLO, new Greeting("Ada"));

        assertThat(events.await(JobCompleted.class).job().id()).isEqualTo(added.id());
        assertThat(names).containsExactly("Ada");
        assertThat(db.jobs()).isZero();
    }

    @Test
    void runsAJobAddedBySqlWithoutPolling() {
        List<String> names = new CopyOnWriteArrayList<>();
        startListening(db.worker()
                .settings(NEVER_POLL.build())
                .task(HELLO, (greeting, context) -> names.add(greeting.name())));

        db.sql("select {schema}.add_job('hello', json_build_object('name', 'Bobby Tables'))")
                .query()
                .singleRow();

        events.await(JobCompleted.class);
        assertThat(names).containsExactly("Bobby Tables");
    }

    @Test
    void startsAJobAtItsRunAtWithoutPolling() {
        AtomicReference<Instant> started = new AtomicReference<>();
        startListening(db.worker()
                .settings(NEVER_POLL.build())
                .task(HELLO, (greeting, context) -> started.set(Instant.now())));

        Instant runAt = Instant.now().plusMillis(700);
        db.scheduler()
                .addJob(
                        HELLO,
                        new Greeting("Ada"),
                        JobSpec.builder().runAt(runAt).build());

        events.await(JobCompleted.class);
        assertThat(started.get()).isAfterOrEqualTo(runAt);
        System.out.println("Handler start after run_at: "
                + Duration.between(runAt, started.get()).toNanos() / 1e6 + " ms");
    }

    @Test
    void startsJobsInOrderOfPriorityRunAtAndId() {
        List<String> order = new CopyOnWriteArrayList<>();
        Instant now = Instant.now().minusSeconds(100);
        add("late", JobSpec.builder().runAt(now.plusSeconds(2)));
        add("first of equals", JobSpec.builder().runAt(now));
        add("second of equals", JobSpec.builder().runAt(now));
        add("low", JobSpec.builder().runAt(now.minusSeconds(50)).priority(5));
        add("high", JobSpec.builder().runAt(now.plusSeconds(3)).priority(-5));

        startListening(db.worker()
                .settings(NEVER_POLL.concurrency(1).build())
                .task(HELLO, (greeting, context) -> order.add(greeting.name())));

        events.await(JobCompleted.class, 5);
        assertThat(order).containsExactly("high", "first of equals", "second of equals", "late", "low");
    }

    @Test
    void neverOverlapsTheJobsOfAQueueAndKeepsTheirOrder() {
        List<String> log = new CopyOnWriteArrayList<>();
        for (int i = 0; i < 20; i++) {
            add("" + i, JobSpec.builder().queueName("serial"));
        }
        startListening(db.worker().settings(NEVER_POLL.concurrency(8).build()).task(HELLO, (greeting, context) -> {
            log.add("begin " + greeting.name());
            log.add("end " + greeting.name());
        }));

        events.await(JobCompleted.class, 20);
        for (int i = 0; i < 20; i++) {
            assertThat(log.subList(2 * i, 2 * i + 2)).containsExactly("begin " + i, "end " + i);
        }
    }

    @Test
    void retriesAFailedJobByTheFormulaAndKeepsItsError() {
        startListening(db.worker().task(HELLO, (greeting, context) -> {
            throw new IllegalStateException("no " + greeting.name());
        }));

        Job job = db.scheduler().addJob(HELLO, new Greeting("Ada"));

        JobFailed failed = events.await(JobFailed.class);
        assertThat(failed.permanently()).isFalse();
        var row = db.sql("""
                        select attempts, last_error, locked_by, extract(epoch from run_at - updated_at) as delay
                        from {schema}.jobs where id = ?""").param(job.id()).query().singleRow();
        assertThat(row).containsEntry("attempts", 1).containsEntry("locked_by", null);
        assertThat((String) row.get("last_error"))
                .startsWith("java.lang.IllegalStateException: no Ada\n\tat dev.pgworker.WorkerTest");
        assertThat(((Number) row.get("delay")).doubleValue())
                .isCloseTo(Math.E, org.assertj.core.data.Offset.offset(0.3));
    }

    @Test
    void failsPermanentlyAfterTheLastAttempt() {
        startListening(db.worker().task(HELLO, (greeting, context) -> {
            assertThat(context.isLastAttempt()).isTrue();
            throw new IllegalStateException("no");
        }));

        add("Ada", JobSpec.builder().maxAttempts(1));

        assertThat(events.await(JobFailed.class).permanently()).isTrue();
        assertThat(db.sql("select last_error from {schema}.jobs where attempts = max_attempts and locked_at is null")
                        .query(String.class)
                        .single())
                .startsWith("java.lang.IllegalStateException: no");
    }

    @Test
    void anUndecodablePayloadFailsTheJobWithThePathOfTheBadField() {
        startListening(db.worker().task(Task.of("hello", Nested.class), (nested, context) -> {}));

        db.scheduler().addJob("hello", java.util.Map.of("inner", java.util.Map.of("count", "many")));

        events.await(JobFailed.class);
        assertThat(db.sql("select last_error from {schema}.jobs")
                        .query(String.class)
                        .single())
                .contains("$.inner.count");
    }

    record Nested(Inner inner) {
        record Inner(int count) {}
    }

    @Test
    void anErrorTextThatPostgresCannotHoldIsKeptReadable() {
        startListening(db.worker().task(HELLO, (greeting, context) -> {
            throw new IllegalStateException("NUL \0 and \uD800 and " + "x".repeat(50_000));
        }));

        add("Ada", JobSpec.builder());

        events.await(JobFailed.class);
        assertThat(db.sql("select last_error from {schema}.jobs")
                        .query(String.class)
                        .single())
                .startsWith("java.lang.IllegalStateException: NUL \uFFFD and ")
                .contains("at dev.pgworker.WorkerTest")
                .hasSizeLessThanOrEqualTo(10_000);
    }

    @Test
    void aWorkerThatLostItsLockChangesNothing() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        startListening(db.worker().task(HELLO, (greeting, context) -> {
            started.countDown();
            mayEnd.await();
        }));
        Job job = db.scheduler().addJob(HELLO, new Greeting("Ada"));
        started.await();

        db.sql("update {schema}._private_jobs set locked_by = 'another-worker'").update();
        mayEnd.countDown();

        assertThat(events.await(JobLost.class).job().id()).isEqualTo(job.id());
        assertThat(db.sql("select locked_by from {schema}.jobs")
                        .query(String.class)
                        .single())
                .isEqualTo("another-worker");
    }

    @Test
    void aJobWhoseRowIsHeldByAnotherTransactionIsCompletedAfterwards() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        startListening(db.worker().task(HELLO, (greeting, context) -> {
            started.countDown();
            mayEnd.await();
        }));
        db.scheduler().addJob(HELLO, new Greeting("Ada"));
        started.await();

        try (var connection = db.dataSource().getConnection()) {
            connection.setAutoCommit(false);
            try (var statement = connection.createStatement()) {
                statement.execute(db.schema().in("select * from {schema}._private_jobs for update"));
                mayEnd.countDown();
                // Another job passes meanwhile.
                Job other = db.scheduler().addJob(HELLO, new Greeting("Grace"));
                events.await(JobCompleted.class, e -> e.job().id() == other.id());
            }
            connection.commit();
        }

        events.await(JobCompleted.class, 2);
        assertThat(events.all(JobLost.class)).isEmpty();
    }

    @Test
    void leavesJobsOfUnknownTasksAlone() throws Exception {
        Job unknown = db.scheduler().addJob("unknown");
        add("Ada", JobSpec.builder());

        assertThat(db.worker().task(HELLO, (greeting, context) -> {}).build().runOnce())
                .isEqualTo(1);

        assertThat(db.sql("select attempts from {schema}.jobs where id = ?")
                        .param(unknown.id())
                        .query(Integer.class)
                        .single())
                .isZero();
    }

    @Test
    void runOnceRunsWhatHandlersAddAndReturns() throws Exception {
        List<String> names = new CopyOnWriteArrayList<>();
        add("3", JobSpec.builder());
        add("later", JobSpec.builder().runIn(Duration.ofHours(1)));

        long run = db.worker()
                .task(HELLO, (greeting, context) -> {
                    names.add(greeting.name());
                    int left = Integer.parseInt(greeting.name()) - 1;
                    if (left > 0) {
                        context.addJob(HELLO, new Greeting("" + left));
                    }
                })
                .build()
                .runOnce();

        assertThat(run).isEqualTo(3);
        assertThat(names).containsExactly("3", "2", "1");
        assertThat(db.jobs()).isEqualTo(1);
        assertThat(db.sql("select count(*) from {schema}._private_workers")
                        .query(Long.class)
                        .single())
                .isZero();
    }

    @Test
    void stopWaitsForRunningHandlersAndGivesUnstartedJobsBackUncounted() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        Worker worker = startListening(
                db.worker().settings(NEVER_POLL.concurrency(1).build()).task(HELLO, (greeting, context) -> {
                    started.countDown();
                    mayEnd.await();
                }));
        add("Ada", JobSpec.builder());
        started.await();

        Thread stopping = new Thread(worker::stop);
        stopping.start();
        mayEnd.countDown();
        stopping.join();

        assertThat(worker.isRunning()).isFalse();
        assertThat(events.all(JobCompleted.class)).hasSize(1);
        assertThat(events.all(WorkerStopped.class)).hasSize(1);
        assertThat(db.jobs()).isZero();
        assertThat(db.sql("select count(*) from {schema}._private_workers")
                        .query(Long.class)
                        .single())
                .isZero();
    }

    @Test
    void stopInterruptsAfterTheGracePeriodAndTheAttemptDoesNotCount() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        Worker worker = startListening(db.worker()
                .settings(WorkerSettings.builder()
                        .shutdownGracePeriod(Duration.ofMillis(50))
                        .interruptedJobRetryDelay(Duration.ofSeconds(77))
                        .build())
                .task(HELLO, (greeting, context) -> {
                    started.countDown();
                    new CountDownLatch(1).await();
                }));
        Job job = db.scheduler().addJob(HELLO, new Greeting("Ada"));
        started.await();

        worker.stop();

        assertThat(events.all(JobReturned.class)).hasSize(1);
        assertThat(events.all(JobFailed.class)).isEmpty();
        var row = db.sql("""
                        select attempts, locked_by, extract(epoch from run_at - updated_at) as delay
                        from {schema}.jobs where id = ?""").param(job.id()).query().singleRow();
        assertThat(row).containsEntry("attempts", 0).containsEntry("locked_by", null);
        assertThat(((Number) row.get("delay")).doubleValue()).isCloseTo(77, org.assertj.core.data.Offset.offset(0.5));
    }

    @Test
    void stopGivesBackTheJobOfAHandlerThatIgnoresItsInterruption() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        CountDownLatch ended = new CountDownLatch(1);
        Worker worker = startListening(db.worker()
                .settings(WorkerSettings.builder()
                        .shutdownGracePeriod(Duration.ZERO)
                        .build())
                .task(HELLO, (greeting, context) -> {
                    started.countDown();
                    awaitUninterruptibly(mayEnd);
                    ended.countDown();
                }));
        db.scheduler().addJob(HELLO, new Greeting("Ada"));
        started.await();

        worker.stop();

        assertThat(events.all(JobReturned.class)).hasSize(1);
        mayEnd.countDown();
        ended.await();
        assertThat(db.sql("select attempts from {schema}.jobs")
                        .query(Integer.class)
                        .single())
                .isZero();
    }

    private static void awaitUninterruptibly(CountDownLatch latch) {
        while (true) {
            try {
                latch.await();
                return;
            } catch (InterruptedException e) {
                // The point of this handler.
            }
        }
    }

    @Test
    void startAndStopAreIdempotentAndRepeatable() {
        Worker worker = db.worker()
                .task(HELLO, (greeting, context) -> {})
                .listener(events)
                .build();
        worker.stop();
        worker.start();
        String first = worker.id();
        worker.start();
        assertThat(worker.id()).isEqualTo(first);
        worker.stop();
        worker.stop();
        assertThat(worker.id()).isNull();

        worker.start();
        assertThat(worker.id()).isNotEqualTo(first);
        add("Ada", JobSpec.builder());
        events.await(JobCompleted.class);
        worker.stop();
    }

    @Test
    void stopReturnsEveryConnectionToThePool() {
        Worker worker = startListening(db.worker().task(HELLO, (greeting, context) -> {}));

        worker.stop();

        assertThat(db.dataSource().getHikariPoolMXBean().getActiveConnections()).isZero();
    }

    @Test
    void twoHandlersOfOneTaskAreRefused() {
        Worker.Builder builder =
                db.worker().task(HELLO, (greeting, context) -> {}).task(HELLO, (greeting, context) -> {});

        assertThatThrownBy(builder::build).hasMessageContaining("hello");
    }

    @Test
    void aJobThatTheHandlerExecutorRefusedRunsLater() {
        AtomicInteger refused = new AtomicInteger();
        startListening(db.worker()
                .settings(WorkerSettings.builder()
                        .pollInterval(Duration.ofMillis(100))
                        .build())
                .handlerExecutor(task -> {
                    if (refused.getAndIncrement() == 0) {
                        throw new RejectedExecutionException("on purpose");
                    }
                    new Thread(task).start();
                })
                .task(HELLO, (greeting, context) -> {}));

        add("Ada", JobSpec.builder());

        events.await(JobCompleted.class);
        assertThat(refused).hasValue(2);
    }

    @Test
    void aThrowingListenerHarmsNothing() {
        startListening(db.worker()
                .listener(event -> {
                    throw new IllegalStateException("on purpose");
                })
                .task(HELLO, (greeting, context) -> {}));

        add("Ada", JobSpec.builder());

        events.await(JobCompleted.class);
    }

    @Test
    void aJobStartsWithinMillisecondsOfItsCommit() {
        AtomicLong begun = new AtomicLong();
        startListening(db.worker()
                .settings(NEVER_POLL.concurrency(2).build())
                .task(HELLO, (greeting, context) -> begun.set(System.nanoTime())));
        double[] millis = new double[200];
        for (int i = 0; i < millis.length; i++) {
            db.scheduler().addJob(HELLO, new Greeting("Ada"));
            long committed = System.nanoTime();
            events.await(JobCompleted.class, i + 1);
            millis[i] = (begun.get() - committed) / 1e6;
        }
        Arrays.sort(millis);
        System.out.printf("Commit to handler start: p50 %.2f ms, p99 %.2f ms%n", millis[100], millis[197]);
    }

    private Worker startListening(Worker.Builder builder) {
        Worker worker = db.start(builder.listener(events));
        events.await(WorkerStarted.class);
        events.await(ListenerConnected.class);
        return worker;
    }

    private void add(String name, JobSpec.Builder spec) {
        db.scheduler().addJob(HELLO, new Greeting(name), spec.build());
    }
}
