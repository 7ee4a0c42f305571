package dev.pgworker.step;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.Worker;
import dev.pgworker.WorkerClient;
import dev.pgworker.WorkerSettings;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobErrored;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.history.HistorySettings;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.JobWait;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.job.Rescheduling;
import dev.pgworker.job.SweepOptions;
import dev.pgworker.job.Task;
import dev.pgworker.limit.Limit;
import dev.pgworker.step.JobStep.Kind;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.RetryDelay;
import dev.pgworker.task.TaskHandler;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.InterceptedDataSource;
import dev.pgworker.testing.LogCapture;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

/** What a step promises, and what jobs that wait do: through the public interfaces and SQL. */
@Tag("any-postgres")
class StepsTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    private static final Duration LONG = Duration.ofDays(7);

    private static final RetryDelay AT_ONCE = (job, error) -> Duration.ZERO;

    record Charge(String id, int amount) {}

    record Approval(String by) {}

    @RegisterExtension
    final TestSchema db = new TestSchema(20);

    private final RecordingListener events = new RecordingListener();

    /** How often each step had its effect. */
    private final Map<String, AtomicInteger> effects = new ConcurrentHashMap<>();

    private final AtomicInteger attempts = new AtomicInteger();

    private JobSignals signals;

    @BeforeEach
    void createEffects() {
        db.sql("create table {schema}.effects (name text, job bigint)").update();
        signals = WorkerClient.jobSignals(db.dataSource(), db.schema(), db.codec(), StepSettings.DEFAULT);
    }

    private Worker start(TaskHandler<Integer> handler) {
        return start(handler, WorkerSettings.builder().concurrency(4));
    }

    private Worker start(TaskHandler<Integer> handler, WorkerSettings.Builder settings) {
        Worker worker = db.start(db.worker()
                .tasks(List.of(TaskRegistration.of(WORK, handler)
                        .with(new TaskOptions(null, null, AT_ONCE, false, false, Set.of(), Set.of()))))
                .transactionManager(new JdbcTransactionManager(db.dataSource()))
                .settings(settings.build())
                .listener(events));
        events.await(ListenerConnected.class);
        return worker;
    }

    private int effect(String name) {
        return effects.computeIfAbsent(name, any -> new AtomicInteger()).incrementAndGet();
    }

    private int count(String name) {
        return effects.computeIfAbsent(name, any -> new AtomicInteger()).get();
    }

    private long rows(String name) {
        return db.sql("select count(*) from {schema}.effects where name = ?")
                .param(name)
                .query(Long.class)
                .single();
    }

    private void insert(String name, JobContext context) {
        db.sql("insert into {schema}.effects values (?, ?)")
                .params(name, context.job().id())
                .update();
    }

    private Job add(int payload) {
        return db.scheduler().addJob(WORK, payload);
    }

    private void awaitWaiting(Job job) {
        Awaitility.await("job that waits")
                .until(() -> db.sql(
                                        "select locked_at is null and run_at > now() from {schema}._private_jobs where id = ?")
                                .param(job.id())
                                .query(Boolean.class)
                                .single()
                        && db.queries().steps(job.id(), false).stream().anyMatch(step -> step.endedAt() == null));
    }

    // Steps that do something

    @Test
    void aStepThatHasEndedIsNotRunAgainAndItsResultComesBack() {
        List<Object> results = new CopyOnWriteArrayList<>();
        start((n, context) -> {
            JobSteps steps = context.steps();
            results.add(steps.run("charge", Charge.class, step -> new Charge("c" + effect("charge"), n)));
            results.add(List.of(steps.run("lines", String[].class, step -> new String[] {"a" + effect("lines")})));
            results.add(steps.inTransaction("book", Integer.class, () -> {
                insert("book", context);
                return 17;
            }));
            steps.run("mail", step -> effect("mail"));
            if (attempts.incrementAndGet() < 3) {
                throw new IllegalStateException("not yet");
            }
        });

        Job job = add(5);

        events.await(JobCompleted.class);
        assertThat(events.all(JobErrored.class)).hasSize(2);
        assertThat(results).hasSize(9).containsOnly(new Charge("c1", 5), List.of("a1"), 17);
        assertThat(List.of(count("charge"), count("lines"), count("mail"))).containsOnly(1);
        assertThat(rows("book")).isEqualTo(1);
        assertThat(job.id()).isPositive();
    }

    @Test
    void twoVersionsOfAHandlerShareTheRecord() {
        TaskHandler<Integer> former = (n, context) -> version(n, context, "a", "b");
        TaskHandler<Integer> latter = (n, context) -> version(n, context, "a", "new", "b");
        start(former);
        start(latter);
        for (int n = 0; n < 20; n++) {
            add(n);
        }
        events.await(JobCompleted.class, 20);
        for (int n = 0; n < 20; n++) {
            assertThat(List.of(count("a" + n), count("b" + n), count("c" + n))).containsExactly(1, 1, 4);
            assertThat(count("new" + n)).isLessThanOrEqualTo(1);
        }
    }

    /** Fails three times before its last step. */
    private void version(int n, JobContext context, String... names) {
        int attempt = effect("c" + n);
        for (String name : names) {
            if (name.equals("b") && attempt < 4) {
                throw new IllegalStateException("not yet");
            }
            context.steps().run(name, step -> effect(name + n));
        }
    }

    @Test
    void aStepThatFailsIsRunAgainAndOneInATransactionLeavesNothing() {
        start((n, context) -> {
            context.steps().run("one", step -> effect("one"));
            context.steps().inTransaction("two", () -> {
                insert("two", context);
                if (effect("two") < 3) {
                    throw new IllegalStateException("no");
                }
            });
        });

        add(1);

        events.await(JobCompleted.class);
        assertThat(count("one")).isEqualTo(1);
        assertThat(count("two")).isEqualTo(3);
        assertThat(rows("two")).isEqualTo(1);
    }

    @Test
    void namesThatAreUsedAgainGetNumbersInTheOrderOfTheirUses() {
        start((n, context) -> {
            for (int i = 0; i < 4; i++) {
                int at = i;
                assertThat(context.steps().run("part", Integer.class, step -> at))
                        .isEqualTo(at);
                int now = attempts.incrementAndGet();
                if (now == 3 || now == 5) {
                    throw new IllegalStateException("in the middle");
                }
            }
            context.steps().sleep("end", LONG);
        });

        Job job = add(1);

        awaitWaiting(job);
        assertThat(db.queries().steps(job.id(), true))
                .extracting(JobStep::name, JobStep::result)
                .containsExactly(
                        tuple("part", "0"),
                        tuple("part#2", "1"),
                        tuple("part#3", "2"),
                        tuple("part#4", "3"),
                        tuple("end", null));
    }

    @Test
    void theIdempotencyKeyIsTheSameInEveryAttemptAndAnotherOneForEachStepAndJob() {
        List<String> keys = new CopyOnWriteArrayList<>();
        List<String> others = new CopyOnWriteArrayList<>();
        start((n, context) -> {
            context.steps().run("a", step -> {
                keys.add(step.idempotencyKey());
                if (keys.size() < 3) {
                    throw new IllegalStateException("again");
                }
            });
            context.steps().run("b", step -> others.add(step.idempotencyKey()));
            context.steps().run("b", step -> others.add(step.idempotencyKey()));
        });
        add(1);
        events.await(JobCompleted.class);
        assertThat(keys).hasSize(3);
        assertThat(Set.copyOf(keys)).hasSize(1);
        add(1);
        events.await(JobCompleted.class, 2);

        assertThat(keys).hasSize(4).last().isNotEqualTo(keys.get(0));
        assertThat(others).hasSize(4).doesNotHaveDuplicates();
        assertThat(others).allMatch(key -> key.matches("\\d+-[0-9a-f]{16}-b(#2)?"));
    }

    @Test
    void aResultThatDoesNotFitFailsTheAttemptWithBothTypesAndTheRemedy() {
        start((n, context) -> {
            if (attempts.incrementAndGet() == 1) {
                Charge unused = context.steps().run("charge", Charge.class, step -> new Charge("c", 1));
                throw new IllegalStateException("deployed anew");
            }
            Integer unused = context.steps().run("charge", Integer.class, step -> 1);
        });

        db.scheduler().addJob(WORK, 1, JobSpec.builder().maxAttempts(2).build());

        JobFailed failed = events.await(JobFailed.class, JobFailed::permanently);
        assertThat(failed.error())
                .hasMessageContainingAll(
                        "step \"charge\"",
                        Charge.class.getName(),
                        Integer.class.getName(),
                        "give the step another name");
        assertThat(events.all(JobCompleted.class)).isEmpty();
    }

    @Test
    void aResultThatIsTooLargeIsRefusedByNameAndTheJobFailsForGood() {
        start((n, context) -> {
            String unused = context.steps()
                    .run("export", String.class, step -> "x".repeat(50 * 1024 * 1024 + effect("export")));
        });

        Job job = add(1);

        JobFailed failed = events.await(JobFailed.class, JobFailed::permanently);
        assertThat(failed.error())
                .hasMessageContainingAll(
                        "step \"export\"", "more than 1048576 bytes", "pgworker.steps.max-result-size");
        assertThat(count("export")).isEqualTo(1);
        assertThat(db.queries().steps(job.id(), false)).isEmpty();
    }

    @Test
    void aResultThatCannotBeWrittenFailsTheJobForGood() {
        start((n, context) -> {
            String unused = context.steps().run("export", String.class, step -> "\ud800" + effect("export"));
        });

        add(1);

        assertThat(events.await(JobFailed.class, JobFailed::permanently).error())
                .hasMessageContainingAll("step \"export\"", "cannot be recorded");
        assertThat(count("export")).isEqualTo(1);
    }

    @Test
    void aLargeResultComesBackWhole() {
        String large = "ä".repeat(400_000);
        start((n, context) -> {
            String result = context.steps().run("export", String.class, step -> {
                effect("export");
                return large;
            });
            assertThat(result).isEqualTo(large);
            if (attempts.incrementAndGet() == 1) {
                throw new IllegalStateException("again");
            }
        });

        add(1);

        events.await(JobCompleted.class);
        assertThat(count("export")).isEqualTo(1);
    }

    @Test
    void whatBelongsToNoStepIsRefusedAsWhatItIs() {
        List<Throwable> thrown = new CopyOnWriteArrayList<>();
        TransactionTemplate transaction = new TransactionTemplate(new JdbcTransactionManager(db.dataSource()));
        start((n, context) -> {
            JobSteps steps = context.steps();
            collect(thrown, () -> steps.run("a#2", step -> {}));
            collect(thrown, () -> steps.run("", step -> {}));
            collect(thrown, () -> steps.run("x".repeat(129), step -> {}));
            collect(thrown, () -> steps.sleep("s", Duration.ofSeconds(-1)));
            collect(thrown, () -> steps.run("outer", step -> steps.run("inner", any -> {})));
            collect(thrown, () -> transaction.executeWithoutResult(any -> steps.run("in", step -> {})));
            collect(thrown, () -> steps.inTransaction("outer", () -> steps.run("inner", step -> {})));
            collect(
                    thrown,
                    () -> CompletableFuture.runAsync(() -> steps.sleep("t", LONG), OwnThread.EACH)
                            .join());
        });

        add(1);

        events.await(JobCompleted.class);
        assertThat(thrown).hasSize(8);
        assertThat(thrown.subList(0, 4)).allMatch(IllegalArgumentException.class::isInstance);
        assertThat(thrown.subList(4, 7)).allMatch(IllegalStateException.class::isInstance);
        assertThat(thrown.get(7)).hasRootCauseInstanceOf(IllegalStateException.class);
    }

    private static void collect(List<Throwable> thrown, Runnable action) {
        try {
            action.run();
        } catch (RuntimeException e) {
            thrown.add(e);
        }
    }

    @Test
    void aWorkerThatWasDeclaredDeadWritesNoStep() throws Exception {
        CountDownLatch begun = new CountDownLatch(2);
        CountDownLatch recovered = new CountDownLatch(1);
        List<Throwable> refused = new CopyOnWriteArrayList<>();
        start((n, context) -> {
            if (context.job().revision() == 0 && effect("attempt-" + n) == 1) {
                try {
                    if (n == 1) {
                        context.steps().run("run", step -> hold(begun, recovered));
                    } else {
                        context.steps().inTransaction("book", () -> {
                            insert("book", context);
                            hold(begun, recovered);
                        });
                    }
                } catch (IllegalStateException e) {
                    refused.add(e);
                    throw e;
                }
                return;
            }
            context.steps().sleep("end", LONG);
        });
        Job one = add(1);
        Job two = add(2);
        assertThat(begun.await(120, TimeUnit.SECONDS)).isTrue();

        // As a sweep of another worker does: the job is free, and this worker does not know it.
        db.sql("update {schema}._private_jobs set locked_at = null, locked_by = null, attempts = 0")
                .update();
        recovered.countDown();

        awaitWaiting(one);
        awaitWaiting(two);
        Awaitility.await().until(() -> refused.size() == 2);
        assertThat(refused).allSatisfy(e -> assertThat(e).hasMessageContaining("no longer holds the job"));
        assertThat(rows("book")).isZero();
        assertThat(db.queries().steps(one.id(), false))
                .extracting(JobStep::name)
                .containsExactly("end");
        assertThat(db.queries().steps(two.id(), false))
                .extracting(JobStep::name)
                .containsExactly("end");
    }

    private static void hold(CountDownLatch begun, CountDownLatch end) {
        begun.countDown();
        try {
            assertThat(end.await(120, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void aJobThatIsAddedAgainBeginsAnewAndOneThatIsOnlyDedupedGoesOn() {
        BlockingQueue<String> runs = new LinkedBlockingQueue<>();
        start((n, context) -> {
            context.steps().run("a", step -> runs.add("a of " + n));
            context.steps().sleep("s", LONG);
        });
        Job job = add(1, JobKeyMode.REPLACE);
        awaitWaiting(job);
        add(2, JobKeyMode.UNSAFE_DEDUPE);
        runNow(job);
        awaitWaiting(job);
        assertThat(runs).containsExactly("a of 1");

        Job replaced = add(3, JobKeyMode.REPLACE);

        assertThat(replaced.id()).isEqualTo(job.id());
        Awaitility.await().until(() -> runs.size() == 2);
        assertThat(runs).containsExactly("a of 1", "a of 3");
        awaitWaiting(job);
        assertThat(db.queries().steps(job.id(), false))
                .extracting(JobStep::name)
                .containsExactly("a", "s");
    }

    @Test
    void aJobThatIsDedupedWhileItRunsKeepsWhatItHasRecorded() throws Exception {
        BlockingQueue<String> runs = new LinkedBlockingQueue<>();
        CountDownLatch first = new CountDownLatch(1);
        CountDownLatch deduped = new CountDownLatch(1);
        start((n, context) -> {
            context.steps().run("a", step -> runs.add("a"));
            first.countDown();
            assertThat(deduped.await(120, TimeUnit.SECONDS)).isTrue();
            context.steps().run("b", step -> runs.add("b"));
            if (attempts.incrementAndGet() == 1) {
                throw new IllegalStateException("again");
            }
        });
        add(1, JobKeyMode.REPLACE);
        assertThat(first.await(120, TimeUnit.SECONDS)).isTrue();

        add(2, JobKeyMode.UNSAFE_DEDUPE);
        deduped.countDown();

        events.await(JobCompleted.class);
        assertThat(runs).containsExactly("a", "b");
    }

    private Job add(int payload, JobKeyMode mode) {
        return db.scheduler()
                .addJob(
                        WORK,
                        payload,
                        JobSpec.builder().jobKey("k").jobKeyMode(mode).build());
    }

    private void runNow(Job job) {
        int before = attempts(job);
        db.sql("update {schema}._private_jobs set last_error = 'told to run' where id = ?")
                .param(job.id())
                .update();
        db.changes()
                .reschedule(
                        List.of(job.id()),
                        Rescheduling.builder().runAt(Instant.EPOCH).build());
        assertThat(before).isZero();
        Awaitility.await("an attempt")
                .until(() -> db.sql("select run_at > now() from {schema}._private_jobs where id = ?")
                        .param(job.id())
                        .query(Boolean.class)
                        .single());
    }

    private int attempts(Job job) {
        return db.sql("select attempts from {schema}._private_jobs where id = ?")
                .param(job.id())
                .query(Integer.class)
                .single();
    }

    // Jobs that wait

    @Test
    void aSignalContinuesTheJobAndTheAttemptDoesNotCount() {
        BlockingQueue<Approval> received = new LinkedBlockingQueue<>();
        start((n, context) -> {
            context.steps().run("before", step -> effect("before"));
            received.add(context.steps().await("approval-" + n, Approval.class, LONG));
            if (attempts.incrementAndGet() == 1) {
                throw new IllegalStateException("again");
            }
        });
        Job job = add(7);
        awaitWaiting(job);
        assertThat(attempts(job)).isZero();
        JobWait wait = db.queries().waitOf(job.id()).orElseThrow();
        assertThat(wait.reason()).isEqualTo(JobWait.Reason.SIGNAL);
        assertThat(wait.text()).isEqualTo("Waits for signal \"approval-7\".");
        assertThat(wait.until()).isAfter(db.queries().now().plus(6, ChronoUnit.DAYS));

        signals.send("approval-7", new Approval("ann"));

        JobCompleted completed = events.await(JobCompleted.class);
        assertThat(completed.job().attempts()).isEqualTo(2);
        assertThat(received).containsExactly(new Approval("ann"), new Approval("ann"));
        assertThat(count("before")).isEqualTo(1);
        assertThat(kept()).isZero();
    }

    private long kept() {
        return db.sql("select count(*) from {schema}.pgworker_signals")
                .query(Long.class)
                .single();
    }

    /** Waits until a signal for which no job waits has been looked at, and nobody holds it. */
    private void awaitSeen() {
        Awaitility.await()
                .until(() -> db.sql("select count(*) from {schema}.pgworker_signals where not fresh")
                                .query(Long.class)
                                .single()
                        == 1);
    }

    @Test
    void aSignalThatComesFirstIsKeptAndTheJobDoesNotEvenStop() {
        start((n, context) -> {
            attempts.incrementAndGet();
            assertThat(context.steps().await("approval", Approval.class, LONG)).isEqualTo(new Approval("bob"));
        });
        db.sql("select {schema}.pgworker_signal('approval', '{\"by\": \"bob\"}')")
                .query()
                .singleRow();
        awaitSeen();

        add(1);

        events.await(JobCompleted.class);
        assertThat(attempts).hasValue(1);
        assertThat(kept()).isZero();
    }

    @Test
    void aSignalOfATransactionThatRollsBackIsNone() {
        TransactionTemplate transaction = new TransactionTemplate(new JdbcTransactionManager(db.dataSource()));
        start((n, context) -> context.steps().await("approval", LONG));
        Job job = add(1);
        awaitWaiting(job);

        transaction.executeWithoutResult(status -> {
            signals.send("approval", null);
            status.setRollbackOnly();
        });
        transaction.executeWithoutResult(status -> signals.send("approval", null));

        events.await(JobCompleted.class);
        assertThat(kept()).isZero();
    }

    @Test
    void ofTwoJobsThatWaitTheFirstGetsTheSignal() {
        BlockingQueue<Integer> ended = new LinkedBlockingQueue<>();
        start((n, context) -> {
            context.steps().await("go", LONG);
            ended.add(n);
        });
        Job one = add(1);
        awaitWaiting(one);
        Job two = add(2);
        awaitWaiting(two);

        signals.send("go", null);

        events.await(JobCompleted.class);
        assertThat(ended).containsExactly(1);
        awaitWaiting(two);
        signals.send("go", null);
        events.await(JobCompleted.class, 2);
        assertThat(ended).containsExactly(1, 2);
    }

    @Test
    void aSignalThatDoesNotComeInTimeIsOverForEveryAttempt() {
        List<String> timeouts = new CopyOnWriteArrayList<>();
        start((n, context) -> {
            try {
                context.steps().await("never", LONG);
            } catch (SignalTimeoutException e) {
                timeouts.add(e.signal());
            }
            if (attempts.incrementAndGet() == 1) {
                throw new IllegalStateException("again");
            }
        });
        Job job = add(1);
        awaitWaiting(job);

        letTimePass(Duration.ofDays(8));

        events.await(JobCompleted.class);
        assertThat(timeouts).containsExactly("never", "never");
    }

    private void letTimePass(Duration time) {
        db.sql("update {schema}.pgworker_steps set due_at = due_at - ? * interval '1 second' where ended_at is null")
                .param(time.toSeconds())
                .update();
        List<Long> ids = db.sql("select id from {schema}._private_jobs where run_at > now()")
                .query(Long.class)
                .list();
        db.changes().reschedule(ids, Rescheduling.builder().runAt(Instant.EPOCH).build());
    }

    @Test
    void aSleepEndsTheAttemptOnceForAll() {
        start((n, context) -> {
            context.steps().sleep("cool-down", LONG);
            context.steps().sleepUntil("until", Instant.EPOCH);
            context.steps().sleep("short", Duration.ofMillis(50));
            attempts.incrementAndGet();
        });
        Job job = add(1);
        awaitWaiting(job);
        assertThat(db.queries().waitOf(job.id()).orElseThrow().reason()).isEqualTo(JobWait.Reason.SLEEP);
        assertThat(db.queries().steps(job.id(), true)).extracting(JobStep::kind).containsExactly(Kind.SLEEP);

        letTimePass(Duration.ofDays(8));

        events.await(JobCompleted.class);
        assertThat(attempts).hasValue(1);
    }

    @Test
    void whoeverTellsAWaitingJobToRunChangesNothing() {
        start((n, context) -> {
            attempts.incrementAndGet();
            context.steps().await("go", LONG);
        });
        Job job = add(1);
        awaitWaiting(job);

        runNow(job);

        awaitWaiting(job);
        assertThat(attempts).hasValue(2);
        assertThat(attempts(job)).isZero();
        signals.send("go", null);
        events.await(JobCompleted.class);
    }

    @Test
    void codeThatSwallowsTheSuspensionIsSuspendedAndToldOf() {
        BlockingQueue<String> went = new LinkedBlockingQueue<>();
        try (LogCapture log = new LogCapture("dev.pgworker")) {
            start((n, context) -> {
                try {
                    context.steps().await("go", LONG);
                    went.add("on");
                    return;
                } catch (Throwable e) {
                    went.add(e.getClass().getSimpleName());
                }
                try {
                    context.steps().run("more", step -> went.add("more"));
                } catch (JobSuspended e) {
                    went.add("again");
                }
                if (n == 2) {
                    throw new IllegalStateException("of its own");
                }
            });
            Job one = add(1);
            Job two = add(2);
            awaitWaiting(one);
            awaitWaiting(two);
            assertThat(attempts(one)).isZero();
            assertThat(attempts(two)).isZero();
            assertThat(log.messages())
                    .filteredOn(text -> text.contains("has caught JobSuspended"))
                    .hasSize(2);
        }
        assertThat(went).containsExactlyInAnyOrder("JobSuspended", "again", "JobSuspended", "again");

        signals.send("go", null);
        signals.send("go", null);

        events.await(JobCompleted.class, 2);
    }

    @Test
    void aJobThatWaitsFreesItsHandlerItsQueueAndItsPermit() {
        WorkerClient.jobLimits(db.dataSource(), db.schema()).put(Limit.concurrency("one", 1, "work"));
        BlockingQueue<Integer> ended = new LinkedBlockingQueue<>();
        start(
                (n, context) -> {
                    if (n == 1) {
                        context.steps().await("go", LONG);
                    }
                    ended.add(n);
                },
                WorkerSettings.builder().concurrency(1));
        Job one =
                db.scheduler().addJob(WORK, 1, JobSpec.builder().queueName("q").build());
        Awaitility.await().until(() -> db.queries().steps(one.id(), false).size() == 1);

        db.scheduler().addJob(WORK, 2, JobSpec.builder().queueName("q").build());
        db.scheduler().addJob(WORK, 3);

        events.await(JobCompleted.class, 2);
        assertThat(ended).containsExactlyInAnyOrder(2, 3);
        signals.send("go", null);
        events.await(JobCompleted.class, 3);
    }

    @Test
    void aJobThatFailsForGoodWhileItWaitsTakesNoSignal() {
        start((n, context) -> context.steps().await("go", LONG));
        Job failed = add(1);
        awaitWaiting(failed);
        Job waiting = add(2);
        awaitWaiting(waiting);
        db.changes().permanentlyFail(List.of(failed.id()), "no");

        signals.send("go", null);

        assertThat(events.await(JobCompleted.class).job().id()).isEqualTo(waiting.id());
        signals.send("go", null);
        awaitSeen();
        db.changes()
                .reschedule(
                        List.of(failed.id()), Rescheduling.builder().attempts(0).build());
        db.sql("select {schema}.pgworker_tend_steps(-1)").query().singleRow();
        events.await(JobCompleted.class, 2);
        assertThat(kept()).isZero();
    }

    @Test
    void rowsThatSomebodyHoldsHoldUpNothingElse() throws Exception {
        start((n, context) -> context.steps().await("go-" + n, LONG));
        Job held = add(1);
        Job free = add(2);
        awaitWaiting(held);
        awaitWaiting(free);
        try (Connection other = db.dataSource().getConnection()) {
            other.setAutoCommit(false);
            other.createStatement()
                    .execute(db.schema()
                            .in("select from {schema}._private_jobs where id = " + held.id() + " for update"));
            signals.send("go-1", null);
            signals.send("go-2", null);
            assertThat(events.await(JobCompleted.class).job().id()).isEqualTo(free.id());
            other.rollback();
        }
        events.await(JobCompleted.class, 2);
    }

    @Test
    void aTriggerThatKeepsAJobHoldsUpNothingElse() {
        start((n, context) -> context.steps().await("go", LONG));
        Job kept = add(1);
        awaitWaiting(kept);
        db.sql("create function {schema}.refuse() returns trigger language plpgsql as "
                        + "'begin raise exception ''not this one''; end'")
                .update();
        db.sql("create trigger refuse before update of run_at on {schema}._private_jobs for each row when (old.id = "
                        + kept.id() + ") execute function {schema}.refuse()")
                .update();
        signals.send("go", null);
        signals.send("other", null);
        Awaitility.await()
                .until(() -> db.sql("select count(*) from {schema}.pgworker_signals where fresh")
                                .query(Long.class)
                                .single()
                        == 0);
        assertThat(kept()).isEqualTo(2);
        db.sql("drop trigger refuse on {schema}._private_jobs").update();
        db.sql("drop function {schema}.refuse()").update();

        letTimePass(Duration.ofDays(8));

        events.await(JobCompleted.class);
        assertThat(kept()).isEqualTo(1);
    }

    @Test
    void aJobWithoutStepsSendsNoStatementAboutThem() {
        List<String> sent = new CopyOnWriteArrayList<>();
        startOn((call, proceed) -> {
            sent.add(call.sql());
            return proceed.proceed();
        });

        add(0);

        events.await(JobCompleted.class);
        assertThat(sent).isNotEmpty().noneMatch(sql -> sql.matches("(?s).*pgworker_(steps|end_step|wait)\\b.*"));
    }

    @Test
    void anAnswerThatIsLostAfterTheCommitOfARecordDoesNotRunTheStepAgain() {
        AtomicInteger answers = new AtomicInteger();
        startOn((call, proceed) -> {
            Object result = proceed.proceed();
            if (call.is("executeQuery", "pgworker_end_step") && answers.incrementAndGet() == 1) {
                throw new SQLException("the answer is lost", "08006");
            }
            return result;
        });

        add(1);

        assertThat(events.await(JobCompleted.class).job().attempts()).isEqualTo(1);
        assertThat(answers).hasValue(2);
        assertThat(count("a")).isEqualTo(1);
    }

    @Test
    void aConnectionThatIsCutBetweenEffectAndRecordDoesNotRunTheStepAgainWhileTheProcessLives() {
        AtomicInteger calls = new AtomicInteger();
        startOn((call, proceed) -> {
            if (call.is("executeQuery", "pgworker_end_step") && calls.incrementAndGet() <= 2) {
                call.connection().abort(Runnable::run);
            }
            return proceed.proceed();
        });

        add(1);

        assertThat(events.await(JobCompleted.class).job().attempts()).isEqualTo(1);
        assertThat(calls).hasValue(3);
        assertThat(count("a")).isEqualTo(1);
    }

    /** Starts a worker with as many steps as the payload says, whose statements are seen by the interceptor. */
    private void startOn(InterceptedDataSource.Interceptor interceptor) {
        db.start(Worker.builder(new InterceptedDataSource(db.dataSource(), interceptor))
                .schema(db.schema())
                .task(WORK, (n, context) -> {
                    for (int i = 0; i < n; i++) {
                        context.steps().run("a", step -> effect("a"));
                    }
                })
                .listener(events));
    }

    // What stays

    @Test
    void stepsGoWithTheirJobHoweverItEndsAndSignalsWhenTheyExpire() {
        start((n, context) -> {
            context.steps().run("a", step -> {});
            if (n > 1) {
                context.steps().await("never", LONG);
            }
        });
        add(1);
        Job removed = add(2);
        Job completed = add(3);
        Job there = add(4);
        List.of(removed, completed, there).forEach(this::awaitWaiting);
        db.sql("delete from {schema}._private_jobs where id = ?")
                .param(removed.id())
                .update();
        db.sql("select {schema}.complete_jobs(array[?::bigint])")
                .param(completed.id())
                .query()
                .singleRow();
        signals.send("expired", null);
        db.sql("update {schema}.pgworker_signals set expires_at = now() - interval '1 second'")
                .update();

        Awaitility.await()
                .until(() -> db.sql("select array_agg(distinct job_id)::text from {schema}.pgworker_steps")
                        .query(String.class)
                        .single()
                        .equals("{" + there.id() + "}"));
        assertThat(kept()).isZero();
    }

    @Test
    void theHistoryShowsTheStepsAsLongAsItHasTheJob() {
        start(
                (n, context) -> {
                    String unused = context.steps().run("a", String.class, step -> "result");
                },
                WorkerSettings.builder()
                        .history(HistorySettings.builder().enabled(true).build()));
        Job job = add(1);
        events.await(JobCompleted.class);
        db.sql("select {schema}.pgworker_tend_steps(-1)").query().singleRow();

        assertThat(db.queries().steps(job.id(), true))
                .extracting(JobStep::result)
                .containsExactly("\"result\"");
        assertThat(db.queries().steps(job.id(), false))
                .extracting(JobStep::result)
                .containsOnlyNulls();

        db.sql("delete from {schema}.pgworker_history").update();
        db.sql("select {schema}.pgworker_tend_steps(-1)").query().singleRow();
        assertThat(db.queries().steps(job.id(), true)).isEmpty();
    }

    @Test
    void signalsAreRefusedByName() {
        assertThatThrownBy(() -> signals.send("a#b", null)).hasMessageContaining("name must not contain #");
        assertThatThrownBy(() -> signals.send("", null)).hasMessageContaining("name must not be empty");
        assertThatThrownBy(() -> signals.send("a", null, Duration.ZERO))
                .hasMessageContaining("keepFor must be between");
        assertThatThrownBy(() -> signals.send("a", "x".repeat(1024 * 1024)))
                .hasMessageContaining("payload of signal \"a\" must have at most");
        assertThatThrownBy(() ->
                        db.sql("select {schema}.pgworker_signal(null)").query().singleRow())
                .hasMessageContaining("name must have 1 to 128 characters");
        assertThatThrownBy(() -> db.sql("select {schema}.pgworker_signal('a', keep_for => '0')")
                        .query()
                        .singleRow())
                .hasMessageContaining("keep_for must be between");
        assertThat(kept()).isZero();
    }

    @Test
    void aPausedTaskContinuesWhenItIsResumed() {
        start((n, context) -> context.steps().await("go", LONG));
        Job job = add(1);
        awaitWaiting(job);
        db.operations().pause(PauseTarget.task("work"), null);
        signals.send("go", null);
        Awaitility.await().until(() -> kept() == 0);
        assertThat(db.queries().waitOf(job.id()).orElseThrow().reason()).isEqualTo(JobWait.Reason.PAUSED);
        db.operations().resume(PauseTarget.task("work"));
        events.await(JobCompleted.class);
    }

    @Test
    void aSweptJobTakesItsStepsAlong() {
        start((n, context) -> {
            context.steps().run("a", step -> effect("a"));
            context.steps().await("go", LONG);
        });
        Job job = add(1);
        awaitWaiting(job);
        assertThat(db.operations()
                        .sweep(new SweepOptions(Duration.ofHours(1), Duration.ZERO, false))
                        .recoveredJobs())
                .isZero();
        signals.send("go", null);
        events.await(JobCompleted.class);
        assertThat(count("a")).isEqualTo(1);
    }
}
