package dev.pgworker.test;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.core.ParameterizedTypeReference;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.Worker;
import dev.pgworker.WorkerClient;
import dev.pgworker.WorkerSettings;
import dev.pgworker.crontab.CronItem;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Rescheduling;
import dev.pgworker.job.Task;
import dev.pgworker.schedule.Misfire;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.BatchResult;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.RetryDelay;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

class TestWorkerTest {

    private static final Task<Greeting> HELLO = Task.of("hello", Greeting.class);
    private static final Task<String> FAIL = Task.of("fail", String.class);
    private static final Task<Integer> SNOOZE = Task.of("snooze", Integer.class);
    private static final Task<Greeting> AGAIN = Task.of("again", Greeting.class);
    private static final Task<List<Integer>> BATCH =
            Task.of("batch", new ParameterizedTypeReference<List<Integer>>() {});
    private static final Task<String> BLOCK = Task.of("block", String.class);

    private static final DataSource dataSource = WorkerDatabase.dataSource();
    private static final PayloadCodec codec = new PayloadCodec(new JsonMapper());
    private static WorkerSchema schema;

    private final List<Greeting> greeted = Collections.synchronizedList(new ArrayList<>());
    private final CountDownLatch blocked = new CountDownLatch(1);
    private final CountDownLatch block = new CountDownLatch(1);
    private TestWorker worker;

    record Greeting(String name) {}

    @BeforeAll
    static void install() {
        schema = WorkerDatabase.newSchema();
    }

    @AfterAll
    static void uninstall() {
        WorkerDatabase.drop(schema);
    }

    @BeforeEach
    void create() {
        worker = TestWorker.create(dataSource, schema, this::tasks);
        worker.clear();
    }

    @AfterEach
    void stop() {
        block.countDown();
        worker.close();
    }

    private void tasks(Worker.Builder builder) {
        builder.settings(WorkerSettings.builder()
                        .shutdownGracePeriod(Duration.ofMillis(100))
                        .build())
                .task(HELLO, (greeting, context) -> greeted.add(greeting))
                // Nothing is due again while a pass takes long.
                .tasks(List.of(TaskRegistration.of(FAIL, (message, context) -> {
                            throw new IllegalStateException(message);
                        })
                        .with(TaskOptions.DEFAULT.withRetryDelay(RetryDelay.fixed(Duration.ofMinutes(10))))))
                .task(SNOOZE, (seconds, context) -> {
                    throw JobControlException.snoozeFor(Duration.ofSeconds(seconds));
                })
                .task(AGAIN, (greeting, context) -> context.addJob(HELLO, greeting))
                .task(BLOCK, (nothing, context) -> {
                    blocked.countDown();
                    block.await();
                })
                .tasks(List.of(TaskRegistration.of(Task.of("error", String.class), (message, context) -> {
                            throw new StackOverflowError(message);
                        })
                        .with(TaskOptions.DEFAULT.withMaxAttempts(1))))
                .batchTask(
                        BATCH,
                        (items, context) -> BatchResult.forEach(items, item -> {
                            if (item < 0) {
                                throw new IllegalArgumentException("negative");
                            }
                        }))
                .cronItem(CronItem.of(HELLO)
                        .dailyAt(4, 0)
                        .id("daily")
                        .payload(new Greeting("cron"))
                        .fill(Duration.ofDays(3))
                        .build());
    }

    private Job add(String name) {
        return worker.jobScheduler().addJob(HELLO, new Greeting(name));
    }

    @Test
    void runsWhatIsDueAndTellsHowItEnded() {
        worker.jobScheduler().addJob(AGAIN, new Greeting("Ada"));
        worker.jobScheduler().addJob(FAIL, "no luck");

        JobRuns runs = worker.runDue();

        assertThat(runs).hasSize(3);
        assertThat(runs).hasRun(AGAIN).isCompleted();
        assertThat(runs).hasRun(HELLO).isCompleted().isAttempt(1);
        assertThat(runs)
                .hasRun(FAIL)
                .isRetrying()
                .runsAgainIn(Duration.ofMinutes(10))
                .error()
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("no luck");
        assertThat(greeted).containsExactly(new Greeting("Ada"));
        assertThat(worker.runs()).hasSize(3);
        assertThat(worker.runDue()).isEmpty();
    }

    @Test
    void anErrorAtTheLastAttemptFailsTheJobForGood() {
        Job job = worker.jobScheduler().addJob("error", "deep");

        JobRun run = worker.runDue().list().get(0);

        assertThat(run).hasFailed().error().isInstanceOf(StackOverflowError.class);
        assertThat(run.nextRunAt()).isNull();
        assertThat(run.next()).isNotNull();
        assertThat(run.next().id()).isEqualTo(job.id());
    }

    @Test
    void whatSnoozesAndWhatFailsInPartRunsAgain() {
        worker.jobScheduler().addJob(SNOOZE, 90);
        worker.jobScheduler().addBatchJob(BATCH, List.of(1, -2, 3, -4));

        JobRuns runs = worker.runDue();

        assertThat(runs).hasRun(SNOOZE).isSnoozed().runsAgainIn(Duration.ofSeconds(90));
        assertThat(runs).hasRun(BATCH).isRetrying().error().hasMessageContaining("2 of 4 items failed");
        assertThat(worker.jobs())
                .hasEnqueued(BATCH)
                .withPayload(List.of(-2, -4))
                .withAttempts(1);
        assertThat(worker.jobs()).hasEnqueued(SNOOZE).withAttempts(0);
        assertThat(runs.of(SNOOZE).list().get(0).nextRunAt())
                .isBetween(Instant.now().plusSeconds(60), Instant.now().plusSeconds(120));
    }

    @Test
    void aReadableFailureHasTheHandlersExceptionAsItsCause() {
        worker.jobScheduler().addJob(FAIL, "no luck");

        JobRuns runs = worker.runDue();

        assertThatThrownBy(() -> assertThat(runs).allCompleted())
                .isInstanceOf(AssertionError.class)
                .hasMessageContainingAll("all jobs to be completed", "(fail, attempt 1/25) RETRYING, runs again at ")
                .hasRootCauseMessage("no luck");
        assertThatThrownBy(() -> assertThat(runs).hasRun(FAIL).isCompleted())
                .hasMessageContainingAll("(fail, attempt 1/25) to be COMPLETED but was", "RETRYING")
                .hasRootCauseMessage("no luck");
        assertThatThrownBy(() -> assertThat(runs).hasRun(HELLO)).hasMessageContaining("one run of task \"hello\"");
        assertThatThrownBy(() -> assertThat(worker.runDue()).allCompleted()).hasMessageContaining("no job has run");
    }

    @Test
    void jobsOfAQueueRunInTheirOrder() {
        for (String name : List.of("a", "b", "c", "d")) {
            worker.jobScheduler()
                    .addJob(
                            HELLO,
                            new Greeting(name),
                            JobSpec.builder().queueName("q").build());
        }

        assertThat(worker.runDue()).hasSize(4).allCompleted();
        assertThat(greeted).extracting(Greeting::name).containsExactly("a", "b", "c", "d");
    }

    @Test
    void aKeyedJobRunsOnce() {
        JobSpec spec =
                JobSpec.builder().jobKey("k").jobKeyMode(JobKeyMode.REPLACE).build();
        worker.jobScheduler().addJob(HELLO, new Greeting("first"), spec);
        worker.jobScheduler().addJob(HELLO, new Greeting("second"), spec);

        assertThat(worker.jobs()).hasEnqueued(HELLO).withKey("k").once();
        assertThat(worker.runDue()).hasSize(1).allCompleted();
        assertThat(greeted).containsExactly(new Greeting("second"));
    }

    @Test
    void timePassesForScheduledJobsAndForRetries() {
        JobSpec tomorrow = JobSpec.builder().runIn(Duration.ofDays(1)).build();
        worker.jobScheduler().addJob(HELLO, new Greeting("Ada"), tomorrow);
        worker.jobScheduler().addJob(FAIL, "no luck");
        worker.jobScheduler()
                .addJob(
                        HELLO,
                        new Greeting("never"),
                        JobSpec.builder()
                                .runAt(Instant.parse("+200000-01-01T00:00:00Z"))
                                .build());
        assertThat(worker.runDue()).hasSize(1);

        worker.advance(Duration.ofHours(23));
        assertThat(worker.runDue()).hasSize(1).hasRun(FAIL).isAttempt(2);

        worker.advance(Duration.ofHours(1));
        JobRuns runs = worker.runDue();
        assertThat(runs).hasRun(HELLO).isCompleted();
        assertThat(runs).hasRun(FAIL).isAttempt(3);
    }

    @Test
    void anInfiniteTimeStaysInfinite() {
        JdbcClient.create(dataSource)
                .sql(schema.in("select {schema}.add_job('hello', '{\"name\":\"-\"}', run_at => '-infinity')"))
                .query()
                .singleRow();

        worker.advance(Duration.ofDays(10));

        assertThat(worker.runDue()).allCompleted();
    }

    @Test
    void theTimeOfARecurringJobPasses() {
        worker.start();
        worker.advance(Duration.ofSeconds(90));
        assertThat(worker.runs()).isEmpty();

        worker.advance(Duration.ofDays(1));

        assertThat(worker.await(HELLO)).isCompleted();
        assertThat(worker.runs()).hasSize(1);
        assertThat(greeted).containsExactly(new Greeting("cron"));
    }

    @Test
    void theTimeOfASchedulePasses() {
        RecurringJobs schedules = WorkerClient.recurringJobs(dataSource, schema, codec);
        schedules.put(Schedule.builder(
                        "every_day",
                        Recurrence.fixedRate(Duration.ofDays(1), Instant.now()),
                        AGAIN,
                        new Greeting("rate"))
                .misfire(Misfire.RUN_ONCE)
                .build());
        worker.start();
        worker.advance(Duration.ofHours(1));
        assertThat(schedules.find("every_day")).get().matches(status -> status.lastRun() == null);

        worker.advance(Duration.ofDays(1));

        assertThat(worker.await(AGAIN)).isCompleted();
        worker.clear();
        assertThat(schedules.find("every_day")).isEmpty();
    }

    @Test
    void timePassesForDeadWorkers() {
        JdbcClient.create(dataSource)
                .sql(schema.in("select {schema}.worker_heartbeat('dead', null)"))
                .query()
                .listOfRows();
        assertThatThrownBy(() -> worker.advance(Duration.ofHours(1)))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContainingAll("Cannot advance", "other workers", "[dead]");
        assertThatThrownBy(() -> worker.clear()).hasMessageContaining("Cannot clear");
        JdbcClient.create(dataSource)
                .sql(schema.in("update {schema}._private_workers set last_heartbeat_at = now() - interval '2 minutes'"))
                .update();

        worker.advance(Duration.ofHours(1));

        assertThat(WorkerClient.jobQueries(dataSource, schema).activeWorkers(Duration.ofMinutes(30)))
                .singleElement()
                .matches(dead -> dead.stale());
    }

    @Test
    void durationsThatCannotBeAreRefused() {
        assertThatThrownBy(() -> worker.advance(Duration.ofMillis(-1))).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> worker.advance(Duration.ofDays(36_501))).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> worker.runDue(Duration.ZERO)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> worker.await(HELLO, Duration.ofSeconds(Long.MAX_VALUE)))
                .isInstanceOf(IllegalArgumentException.class);
        worker.advance(Duration.ZERO);
    }

    @Test
    void aHandlerThatHangsIsNamed() {
        worker.jobScheduler().addJob(BLOCK, "");

        assertThatThrownBy(() -> worker.runDue(Duration.ofSeconds(5)))
                .isInstanceOf(AssertionError.class)
                .hasMessageContainingAll("still being run after PT5S", "(block, attempt 1/25)");
    }

    @Test
    void waitsForAJobThatRunsInTheBackground() {
        worker.start();
        Job failing = worker.jobScheduler().addJob(FAIL, "no luck");
        Job job = add("Ada");

        assertThat(worker.await(job)).isCompleted();
        assertThat(worker.await(failing)).isRetrying();
        assertThat(worker.await(failing).nextRunAt()).isAfter(Instant.now());
        assertThatThrownBy(() -> worker.runDue()).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void waitsForAJobThatTheTestRuns() {
        assertThat(worker.await(add("Ada"))).isCompleted();
        add("Bob");
        assertThat(worker.await("hello", Duration.ofMinutes(1))).isCompleted();
    }

    @Test
    void saysWhyAJobWaits() throws Exception {
        Job later = worker.jobScheduler()
                .addJob(
                        HELLO,
                        new Greeting("Ada"),
                        JobSpec.builder().runIn(Duration.ofHours(1)).build());
        Job unserved = worker.jobScheduler().addJob("helo", null);
        Job removed = add("Bob");
        WorkerClient.jobChanges(dataSource, schema).complete(List.of(removed.id()));
        Job failed = worker.jobScheduler().addJob("error", "deep");
        worker.runDue();
        worker.forgetRuns();

        assertThatThrownBy(() -> worker.await(later))
                .isInstanceOf(AssertionError.class)
                .hasMessageContainingAll("has not been run", "it is due in PT59M", "advance(Duration)");
        assertThatThrownBy(() -> worker.await(unserved))
                .hasMessageContainingAll("no handler for the task \"helo\"", "hello");
        assertThatThrownBy(() -> worker.await(removed)).hasMessageContaining("there is no such job");
        assertThatThrownBy(() -> worker.await(failed)).hasMessageContainingAll("failed permanently", "deep");
        assertThatThrownBy(() -> worker.await(SNOOZE)).hasMessageContainingAll("No job of task \"snooze\"", "helo");
        assertThatThrownBy(() -> worker.await(HELLO)).hasMessageContaining("it is due in");

        worker.start();
        assertThatThrownBy(() -> worker.await(later, Duration.ofMillis(50))).hasMessageContaining("it is due in");
        JobSpec queue = JobSpec.builder().queueName("q").build();
        Job running = worker.jobScheduler().addJob(BLOCK, "", queue);
        Job behind = worker.jobScheduler().addJob(HELLO, new Greeting("Ada"), queue);
        blocked.await();
        assertThatThrownBy(() -> worker.await(behind, Duration.ofMillis(500)))
                .hasMessageContainingAll("its queue \"q\" has another job first", "(block, attempt 1/25)");
        assertThatThrownBy(() -> worker.await(running, Duration.ofMillis(50)))
                .hasMessageContainingAll("running for", "Waited for PT0.05S");
    }

    @Test
    void refusesToRunInATransaction() {
        new TransactionTemplate(new JdbcTransactionManager(dataSource)).executeWithoutResult(transaction -> {
            add("Ada");

            assertThat(worker.jobs()).hasEnqueued(HELLO).withPayload(new Greeting("Ada"));
            assertThatThrownBy(() -> worker.runDue())
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContainingAll("transaction", "TestTransaction");
            assertThatThrownBy(() -> worker.clear()).isInstanceOf(IllegalStateException.class);
            transaction.setRollbackOnly();
        });
        assertThat(worker.jobs()).isEmpty();
    }

    @Test
    void clearsWhileTheWorkerRuns() throws Exception {
        worker.start();
        assertThat(worker.await(add("Ada"))).isCompleted();
        worker.jobScheduler()
                .addJob(
                        HELLO,
                        new Greeting("Ada"),
                        JobSpec.builder()
                                .queueName("q")
                                .runIn(Duration.ofHours(1))
                                .build());

        worker.clear();

        assertThat(worker.jobs()).isEmpty();
        assertThat(worker.runs()).isEmpty();
        assertThat(worker.await(add("Bob"))).isCompleted();
    }

    @Test
    void twoThreadsRunWhatIsDueOneAfterTheOther() throws Exception {
        List<JobRuns> found = Collections.synchronizedList(new ArrayList<>());
        for (int i = 0; i < 20; i++) {
            add("Ada");
        }
        Thread other = new Thread(() -> found.add(worker.runDue()));
        other.start();
        found.add(worker.runDue());
        other.join(TimeUnit.MINUTES.toMillis(2));

        assertThat(found.stream().mapToInt(JobRuns::size).sum()).isEqualTo(20);
    }

    @Test
    void aWorkerThatDoesNotReportIsRefused() {
        Worker silent = Worker.builder(dataSource)
                .schema(schema)
                .task(HELLO, (greeting, context) -> {})
                .build();
        TestWorker deaf = TestWorker.of(() -> silent, dataSource, schema, codec, worker.jobScheduler());
        add("Ada");

        assertThatThrownBy(() -> deaf.runDue())
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("TestWorker.listener()");
    }

    @Test
    void withoutAWorkerJobsCanBeSeen() {
        TestWorker none = TestWorker.of(() -> null, dataSource, schema, codec, worker.jobScheduler());
        Job job = add("Ada");

        assertThat(none.jobs()).hasEnqueued(HELLO).withPayload(new Greeting("Ada"));
        assertThatThrownBy(() -> none.runDue())
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("pgworker.enabled");
        WorkerClient.jobChanges(dataSource, schema)
                .reschedule(
                        Set.of(job.id()),
                        Rescheduling.builder().runIn(Duration.ofHours(1)).build());
        none.advance(Duration.ofHours(2));
        assertThat(none.jobs()).hasEnqueued(HELLO).due();
        none.clear();
        assertThat(none.jobs()).isEmpty();
    }
}
