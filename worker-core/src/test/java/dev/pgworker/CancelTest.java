package dev.pgworker;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.LongStream;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.event.WorkerEvent.JobCancelRequested;
import dev.pgworker.event.WorkerEvent.JobCancelled;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobEnded;
import dev.pgworker.event.WorkerEvent.JobErrored;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.JobInterrupted;
import dev.pgworker.event.WorkerEvent.JobReturned;
import dev.pgworker.event.WorkerEvent.JobSnoozed;
import dev.pgworker.event.WorkerEvent.JobStarted;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.job.Cancellation;
import dev.pgworker.job.Cancellation.State;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobChange;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Rescheduling;
import dev.pgworker.job.Task;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.task.CancelSettings;
import dev.pgworker.task.JobCancelledException;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.TaskHandler;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** What cancelling makes of jobs, whatever they and their handlers do. */
@Tag("any-postgres")
class CancelTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    private static final Duration LIMIT = Duration.ofMinutes(2);

    @RegisterExtension
    final TestSchema db = new TestSchema(20);

    private final RecordingListener events = new RecordingListener();

    private final BlockingQueue<JobContext> started = new LinkedBlockingQueue<>();

    private final CountDownLatch end = new CountDownLatch(1);

    private void start(TaskHandler<Integer> handler) {
        start(handler, TaskOptions.DEFAULT, settings());
    }

    private void start(TaskHandler<Integer> handler, TaskOptions options, WorkerSettings.Builder settings) {
        db.start(db.worker()
                .tasks(List.of(TaskRegistration.of(WORK, handler).with(options)))
                .transactionManager(new JdbcTransactionManager(db.dataSource()))
                .settings(settings.build())
                .listener(events));
        if (settings.build().listen()) {
            events.await(ListenerConnected.class);
        }
    }

    private static WorkerSettings.Builder settings() {
        return WorkerSettings.builder()
                .concurrency(2)
                .shutdownGracePeriod(Duration.ofMillis(100))
                .cancel(new CancelSettings(Duration.ZERO, Duration.ofMinutes(10)));
    }

    /** Runs until it is interrupted. */
    private void sleep(int any, JobContext context) throws InterruptedException {
        started.add(context);
        end.await();
    }

    private JobContext running() throws InterruptedException {
        JobContext context = started.poll(LIMIT.toMillis(), TimeUnit.MILLISECONDS);
        assertThat(context).as("a handler that runs").isNotNull();
        return context;
    }

    private Job add() {
        return db.scheduler().addJob(WORK, 1);
    }

    private Job add(JobSpec spec) {
        return db.scheduler().addJob(WORK, 1, spec);
    }

    private State cancel(Job job) {
        return db.changes().cancel(List.of(job.id())).get(0).state();
    }

    private State await(Job job) {
        List<Cancellation> states = db.changes().awaitCancellations(List.of(job.id()), LIMIT);
        return states.isEmpty() ? State.GONE : states.get(0).state();
    }

    // Jobs that do not run

    @Test
    void aWaitingJobIsRemovedAndAnUnknownOneGone() {
        Job waiting = add(JobSpec.builder().runIn(Duration.ofHours(1)).build());
        Job failed = add();
        db.changes().permanentlyFail(List.of(failed.id()), "no");

        List<Cancellation> answers =
                db.changes().cancel(List.of(77_777L, waiting.id(), failed.id(), waiting.id(), Long.MIN_VALUE));

        assertThat(answers)
                .extracting(Cancellation::jobId)
                .containsExactly(77_777L, waiting.id(), failed.id(), Long.MIN_VALUE);
        assertThat(answers)
                .extracting(Cancellation::state)
                .containsExactly(State.GONE, State.REMOVED, State.REMOVED, State.GONE);
        assertThat(answers).allSatisfy(answer -> {
            assertThat(answer.workerId()).isNull();
            assertThat(answer.requestedAt()).isNull();
        });
        assertThat(db.jobs()).isZero();
        assertThat(db.queries().cancellations(List.of(waiting.id()))).isEmpty();
    }

    @Test
    void wrongArgumentsAreNamed() {
        assertThat(db.changes().cancel(List.of())).isEmpty();
        assertThatThrownBy(() -> db.changes().cancel(Arrays.asList(1L, null)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("ids");
        assertThatThrownBy(() -> db.changes().cancel("")).hasMessageContaining("jobKey");
        assertThatThrownBy(() -> db.changes().awaitCancellations(List.of(1L), Duration.ofDays(2)))
                .hasMessageContaining("limit");
        assertThatThrownBy(() -> new TransactionTemplate(new JdbcTransactionManager(db.dataSource()))
                        .execute(status -> db.changes().awaitCancellations(List.of(1L), LIMIT)))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("transaction");
        assertThatThrownBy(() -> new CancelSettings(Duration.ofSeconds(-1), Duration.ZERO))
                .hasMessageContaining("interruptAfter must be between");
        assertThatThrownBy(() -> new CancelSettings(Duration.ZERO, Duration.ofDays(366)))
                .hasMessageContaining("abandonAfter must be between");
        assertThatThrownBy(() -> db.sql("select {schema}.pgworker_cancel_jobs(array[1], repeat('x', 256))")
                        .query()
                        .listOfRows())
                .hasMessageContaining("by must have 1 to 255 characters");
        assertThat(db.sql("select count(*) from {schema}.pgworker_cancel_jobs(array[null, 5, 5, null]::bigint[])")
                        .query(Long.class)
                        .single())
                .isEqualTo(1);
    }

    @Test
    @Tag("thorough")
    void tenThousandJobsAreCancelledAtOnce() {
        List<JobRequest> requests = LongStream.range(0, 10_000)
                .mapToObj(n -> JobRequest.of(WORK, 1, JobSpec.DEFAULT))
                .toList();
        List<Long> ids = db.scheduler().addJobs(requests).stream().map(Job::id).toList();
        db.sql(
                        "update {schema}._private_jobs set locked_at = now(), locked_by = 'pool-1', attempts = 1 where id % 2 = 0")
                .update();

        List<Cancellation> answers = db.changes().cancel(ids);

        assertThat(answers).extracting(Cancellation::jobId).containsExactlyElementsOf(ids);
        assertThat(answers)
                .allSatisfy(answer ->
                        assertThat(answer.state()).isEqualTo(answer.jobId() % 2 == 0 ? State.MARKED : State.REMOVED));
        assertThat(db.jobs()).isEqualTo(5_000);
    }

    @Test
    void aFilterCancelsWhatMatches() throws Exception {
        start(this::sleep);
        Job running = add();
        running();
        Job waiting = add(JobSpec.builder().runIn(Duration.ofHours(1)).build());
        db.scheduler()
                .addJob(
                        "other",
                        null,
                        JobSpec.builder().runIn(Duration.ofHours(1)).build());

        var result = db.changes()
                .actingAs("ada")
                .change(
                        db.queries()
                                .select(
                                        JobQuery.builder()
                                                .taskIdentifier("work")
                                                .build(),
                                        100),
                        new JobChange.Cancel(),
                        (done, changed, total) -> true);

        assertThat(result.changed()).isEqualTo(2);
        assertThat(await(running)).isEqualTo(State.CANCELLED);
        assertThat(db.queries().cancellations(List.of(running.id())).get(0).requestedBy())
                .isEqualTo("ada");
        assertThat(db.queries().find(waiting.id())).isEmpty();
        assertThat(db.jobs()).as("the other task's").isEqualTo(1);
    }

    // Jobs that run

    @Test
    void aRunningHandlerIsInterruptedAndItsJobNeverRunsAgain() throws Exception {
        start(this::sleep);
        Job job = add(JobSpec.builder().jobKey("k").queueName("q").build());
        JobContext context = running();
        assertThat(context.isCancelled()).isFalse();
        context.throwIfCancelled();

        Cancellation answer = db.changes().actingAs("ada").cancel("k").orElseThrow();

        assertThat(answer.state()).isEqualTo(State.REQUESTED);
        assertThat(answer.requestedBy()).isEqualTo("ada");
        assertThat(answer.workerId()).isEqualTo(context.workerId());
        assertThat(answer.requestedAt()).isNotNull();
        assertThat(await(job)).isEqualTo(State.CANCELLED);
        assertThat(context.isCancelled()).isTrue();
        assertThat(context.isInterrupted()).isTrue();
        assertThatThrownBy(context::throwIfCancelled).isInstanceOf(JobCancelledException.class);
        assertThat(db.jobs()).isZero();
        events.await(JobCancelled.class);
        assertThat(events.await(JobCancelRequested.class, 1)).hasSize(1);
        assertThat(events.await(JobInterrupted.class, 1)).hasSize(1);
        assertThat(events.await(JobEnded.class, 1)).hasSize(1);
        assertThat(events.all(JobErrored.class)).isEmpty();
        assertThat(events.all(JobFailed.class)).isEmpty();
        assertThat(cancel(job)).as("again").isEqualTo(State.GONE);
        assertThat(db.queries().cancellations(List.of(job.id())).get(0).state())
                .as("what became of it is remembered")
                .isEqualTo(State.CANCELLED);
    }

    @Test
    void theNextJobOfTheQueueGoesOn() throws Exception {
        AtomicBoolean second = new AtomicBoolean();
        start((n, context) -> {
            if (second.getAndSet(true)) {
                return;
            }
            sleep(n, context);
        });
        JobSpec inQueue = JobSpec.builder().queueName("q").build();
        Job first = add(inQueue);
        running();
        Job next = add(inQueue);

        cancel(first);

        events.await(JobCompleted.class, e -> e.job().id() == next.id());
        assertThat(await(first)).isEqualTo(State.CANCELLED);
    }

    /** What a handler may do once it is told. */
    enum Ending {
        EXCEPTION,
        ERROR,
        SNOOZE,
        FAIL,
        RETRY,
        SNEAKY_OUT_OF_MEMORY
    }

    @ParameterizedTest
    @EnumSource
    void whateverTheHandlerThrowsItIsNotRetried(Ending ending) throws Exception {
        start((n, context) -> {
            started.add(context);
            try {
                end.await();
            } catch (InterruptedException e) {
                switch (ending) {
                    case EXCEPTION -> throw new IllegalStateException("on purpose", e);
                    case ERROR -> throw new StackOverflowError("on purpose");
                    case SNOOZE -> throw JobControlException.snoozeFor(Duration.ofMillis(1));
                    case FAIL -> throw JobControlException.failPermanently("on purpose");
                    case RETRY -> throw JobControlException.retryIn(Duration.ofMillis(1), "on purpose", e);
                    case SNEAKY_OUT_OF_MEMORY -> throw new OutOfMemoryError("on purpose");
                }
            }
        });
        Job job = add();
        running();

        assertThat(cancel(job)).isEqualTo(State.REQUESTED);

        assertThat(await(job)).isEqualTo(State.CANCELLED);
        events.await(JobCancelled.class);
        assertThat(db.jobs()).isZero();
        assertThat(events.all(JobSnoozed.class)).isEmpty();
        assertThat(events.all(JobFailed.class)).isEmpty();
    }

    @Test
    void aHandlerThatSwallowsTheInterruptionAndSucceedsHasSucceeded() throws Exception {
        start((n, context) -> {
            started.add(context);
            try {
                end.await();
            } catch (InterruptedException e) {
                assertThat(context.isCancelled()).isTrue();
            }
        });
        Job job = add();
        running();

        assertThat(cancel(job)).isEqualTo(State.REQUESTED);

        assertThat(await(job)).isEqualTo(State.COMPLETED);
        events.await(JobCompleted.class);
        assertThat(events.all(JobCancelled.class)).isEmpty();
        assertThat(db.jobs()).isZero();
    }

    @Test
    void aHandlerThatNeverEndsIsAbandonedAndAnotherTakesItsPlace() throws Exception {
        AtomicBoolean over = new AtomicBoolean();
        start(
                (n, context) -> {
                    started.add(context);
                    while (n == 1 && !over.get()) {
                        LockSupport.parkNanos(1_000_000);
                        Thread.interrupted();
                    }
                },
                TaskOptions.DEFAULT,
                settings().concurrency(1).cancel(new CancelSettings(Duration.ZERO, Duration.ofMillis(300))));
        Job job = add();
        running();

        assertThat(cancel(job)).isEqualTo(State.REQUESTED);

        assertThat(await(job)).isEqualTo(State.CANCELLED);
        db.scheduler().addJob(WORK, 2);
        events.await(JobCompleted.class);
        assertThat(db.jobs()).isZero();
        over.set(true);
    }

    @Test
    void aGraceLetsTheHandlerEndByItself() throws Exception {
        start(
                (n, context) -> {
                    started.add(context);
                    while (true) {
                        Thread.sleep(1);
                        context.throwIfCancelled();
                    }
                },
                TaskOptions.DEFAULT,
                settings().cancel(new CancelSettings(Duration.ofMinutes(1), Duration.ZERO)));
        Job job = add();
        running();

        cancel(job);

        assertThat(await(job)).isEqualTo(State.CANCELLED);
        assertThat(events.all(JobInterrupted.class)).isEmpty();
    }

    @Test
    void aTransactionalHandlerIsRolledBackOrHasSucceeded() throws Exception {
        db.sql("create table {schema}.effects (n int)").update();
        AtomicBoolean swallows = new AtomicBoolean();
        start(
                (n, context) -> {
                    db.sql("select 1").query().singleRow();
                    org.springframework.jdbc.core.simple.JdbcClient.create(db.dataSource())
                            .sql(db.schema().in("insert into {schema}.effects values (?)"))
                            .param(n)
                            .update();
                    started.add(context);
                    try {
                        end.await();
                    } catch (InterruptedException e) {
                        if (!swallows.get()) {
                            throw e;
                        }
                    }
                },
                TaskOptions.DEFAULT.withTransactional(true),
                settings());
        Job rolledBack = add();
        running();
        cancel(rolledBack);
        assertThat(await(rolledBack)).isEqualTo(State.CANCELLED);
        assertThat(effects()).isZero();

        swallows.set(true);
        Job committed = add();
        running();
        cancel(committed);
        assertThat(await(committed)).isEqualTo(State.COMPLETED);
        assertThat(effects()).isEqualTo(1);
        assertThat(db.jobs()).isZero();
    }

    private long effects() {
        return db.sql("select count(*) from {schema}.effects").query(Long.class).single();
    }

    @Test
    void aSlowDirectHandlerIsInterruptedAndOthersOfItsBatchSucceed() throws Exception {
        start(
                (n, context) -> {
                    if (n == 1) {
                        sleep(n, context);
                    }
                },
                TaskOptions.DEFAULT.withDirect(true),
                settings());
        List<Job> jobs = db.scheduler()
                .addJobs(List.of(
                        JobRequest.of(WORK, 0, JobSpec.DEFAULT),
                        JobRequest.of(WORK, 1, JobSpec.DEFAULT),
                        JobRequest.of(WORK, 2, JobSpec.DEFAULT)));
        running();

        State answer = cancel(jobs.get(1));

        assertThat(answer).isEqualTo(State.REQUESTED);
        assertThat(await(jobs.get(1))).isEqualTo(State.CANCELLED);
        events.await(JobCompleted.class, 2);
        assertThat(db.jobs()).isZero();
    }

    @Test
    void jobsThatAreClaimedButHaveNotStartedDoNotStart() throws Exception {
        start(
                (n, context) -> {
                    if (n == 1) {
                        sleep(n, context);
                    }
                },
                TaskOptions.DEFAULT,
                settings().concurrency(1).localQueueTtl(Duration.ofMinutes(1)));
        db.scheduler()
                .addJobs(LongStream.range(0, 400)
                        .mapToObj(n -> JobRequest.of(WORK, 0, JobSpec.DEFAULT))
                        .toList());
        events.await(JobCompleted.class, 400);
        Job blocking = add();
        running();
        db.scheduler()
                .addJobs(LongStream.range(0, 20)
                        .mapToObj(n -> JobRequest.of(WORK, 0, JobSpec.DEFAULT))
                        .toList());
        List<Long> claimed = Awaitility.await("claimed ahead")
                .until(
                        () -> db.sql("select id from {schema}.jobs where locked_by is not null and id <> "
                                        + blocking.id())
                                .query(Long.class)
                                .list(),
                        found -> !found.isEmpty());

        List<Cancellation> answers = db.changes().cancel(claimed);

        assertThat(answers).allSatisfy(one -> assertThat(one.state()).isEqualTo(State.REQUESTED));
        assertThat(db.changes().awaitCancellations(claimed, LIMIT))
                .hasSize(claimed.size())
                .allSatisfy(one -> assertThat(one.state()).isEqualTo(State.CANCELLED));
        assertThat(events.all(JobStarted.class))
                .noneMatch(e -> claimed.contains(e.job().id()));
        cancel(blocking);
        assertThat(await(blocking)).isEqualTo(State.CANCELLED);
        assertThat(events.all(JobReturned.class)).isEmpty();
    }

    // Notifications

    @Test
    void withoutNotificationsTheHandlerIsToldWithinSeconds() throws Exception {
        start(this::sleep, TaskOptions.DEFAULT, settings().listen(false).pollInterval(Duration.ofMillis(50)));
        Job job = add();
        running();

        cancel(job);

        assertThat(await(job)).isEqualTo(State.CANCELLED);
    }

    @Test
    @Tag("thorough")
    void aLostNotificationIsMadeUpForByTheHeartbeat() throws Exception {
        start(
                this::sleep,
                TaskOptions.DEFAULT,
                settings()
                        .recovery(RecoverySettings.builder()
                                .heartbeatInterval(Duration.ofMillis(200))
                                .build()));
        Job job = add();
        JobContext context = running();
        // What the function does, but for the notification.
        db.sql("update {schema}._private_jobs set attempts = max_attempts").update();
        db.sql("insert into {schema}.pgworker_cancellations values (?, now(), null, ?)")
                .params(job.id(), context.workerId())
                .update();

        assertThat(await(job)).isEqualTo(State.CANCELLED);
        assertThat(db.jobs()).isZero();
    }

    @Test
    void nobodyIsToldOfACancellationThatIsRolledBack() throws Exception {
        start(this::sleep);
        Job job = add();
        JobContext context = running();

        new TransactionTemplate(new JdbcTransactionManager(db.dataSource())).executeWithoutResult(status -> {
            assertThat(cancel(job)).isEqualTo(State.REQUESTED);
            status.setRollbackOnly();
        });
        db.sql("select pg_notify('pgworker:cancel', ?)")
                .param(context.workerId())
                .query()
                .singleRow();
        db.sql("select pg_notify('pgworker:cancel', repeat('x', 7000))").query().singleRow();
        Job other = add();
        running();
        cancel(other);

        assertThat(await(other)).isEqualTo(State.CANCELLED);
        assertThat(context.isCancelled()).isFalse();
        end.countDown();
        events.await(JobCompleted.class, e -> e.job().id() == job.id());
    }

    @Test
    void runOnceCancelsToo() throws Exception {
        Job job = add();
        Worker worker = db.worker()
                .tasks(List.of(TaskRegistration.of(WORK, this::sleep)))
                .settings(settings().build())
                .listener(events)
                .build();
        Thread runs = new Thread(() -> {
            try {
                worker.runOnce();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        runs.start();
        running();

        assertThat(cancel(job)).isEqualTo(State.REQUESTED);

        assertThat(await(job)).isEqualTo(State.CANCELLED);
        runs.join(LIMIT.toMillis());
        assertThat(runs.isAlive()).isFalse();
        worker.stop();
    }

    // Other workers

    @Test
    void aJobOfAnotherWorkerIsMarkedAndDoesNotRunAgain() {
        Job failing = add();
        Job succeeding = add();
        lock("pool-1");

        assertThat(cancel(failing)).isEqualTo(State.MARKED);
        assertThat(cancel(succeeding)).isEqualTo(State.MARKED);
        assertThat(db.changes().awaitCancellations(List.of(failing.id(), succeeding.id()), Duration.ofMillis(50)))
                .allSatisfy(one -> assertThat(one.state()).isEqualTo(State.MARKED));
        // What Node.js does.
        db.sql("""
                update {schema}._private_jobs set last_error = 'no', locked_at = null, locked_by = null,
                  run_at = greatest(now(), run_at) + exp(least(attempts, 10)) * interval '1 second'
                where id = ? and locked_by = 'pool-1'""").param(failing.id()).update();
        db.sql("delete from {schema}._private_jobs where id = ?")
                .param(succeeding.id())
                .update();

        assertThat(await(failing)).isEqualTo(State.CANCELLED);
        assertThat(await(succeeding)).isEqualTo(State.COMPLETED);
        assertThat(db.sql("select is_available from {schema}._private_jobs where id = ?")
                        .param(failing.id())
                        .query(Boolean.class)
                        .single())
                .isFalse();
        tend();
        assertThat(db.jobs()).isZero();
        assertThat(await(failing)).isEqualTo(State.CANCELLED);
        assertThat(await(succeeding)).isEqualTo(State.COMPLETED);
        db.sql("update {schema}.pgworker_cancellations set ended_at = ended_at - interval '61 minutes'")
                .update();
        tend();
        assertThat(await(failing)).isEqualTo(State.GONE);
    }

    @Test
    void whateverAUserIsCalledJobsAreCancelled() {
        Job byId = add();
        add(JobSpec.builder().jobKey("key").build());
        lock("elsewhere");
        JobChanges hostile = db.changes().actingAs("\0\ud800x");

        assertThat(hostile.cancel(List.of(byId.id())).get(0).requestedBy()).isEqualTo("\ufffd\ufffdx");
        assertThat(hostile.cancel("key").orElseThrow().requestedBy()).isEqualTo("\ufffd\ufffdx");
    }

    private void lock(String worker) {
        db.sql("update {schema}._private_jobs set locked_at = now(), locked_by = ?, attempts = attempts + 1")
                .param(worker)
                .update();
    }

    private void tend() {
        db.sql("select {schema}.pgworker_tend_cancellations()").query().singleRow();
    }

    @Test
    void aJobThatWasToldToBeCancelledCannotBeRunAgainByHand() {
        Job rescheduled = add();
        Job due = add();
        Job other = add();
        lock("pool-1");
        assertThat(cancel(rescheduled)).isEqualTo(State.MARKED);
        assertThat(cancel(due)).isEqualTo(State.MARKED);
        db.sql("update {schema}._private_jobs set locked_at = null, locked_by = null, last_error = 'no'")
                .update();
        assertThat(await(due)).isEqualTo(State.CANCELLED);

        assertThat(db.changes()
                        .reschedule(
                                List.of(rescheduled.id(), other.id()),
                                Rescheduling.builder().attempts(0).build()))
                .extracting(Job::id)
                .containsExactly(other.id());
        assertThat(db.changes().runNow(List.of(due.id()))).isEmpty();

        assertThat(db.queries().find(List.of(rescheduled.id(), due.id()), 0)).isEmpty();
        assertThat(await(rescheduled)).isEqualTo(State.CANCELLED);
        assertThat(await(due)).isEqualTo(State.CANCELLED);
        start((n, context) -> {});
        events.await(JobCompleted.class);
        assertThat(events.all(JobCompleted.class)).hasSize(1);
    }

    @Test
    void failedJobsThatAreCleanedUpRemovedOrCompletedByHandCountAsCancelled() {
        Job cleaned = add();
        Job removed = add();
        Job completed = add();
        lock("pool-1");
        db.changes().cancel(List.of(cleaned.id(), removed.id(), completed.id()));
        db.sql("update {schema}._private_jobs set locked_at = null, locked_by = null, last_error = 'no'")
                .update();

        db.changes().remove(List.of(removed.id()));
        db.changes().complete(List.of(completed.id()));
        db.operations().cleanup(java.util.Set.of(dev.pgworker.job.CleanupTask.DELETE_PERMAFAILED_JOBS));

        assertThat(await(cleaned)).isEqualTo(State.CANCELLED);
        assertThat(await(removed)).isEqualTo(State.CANCELLED);
        assertThat(await(completed)).isEqualTo(State.CANCELLED);
        assertThat(db.jobs()).isZero();
    }

    @Test
    void jobsOfADeadWorkerEndAsCancelledWhenTheyAreTakenFromIt() {
        Job job = add();
        Job queued = add(JobSpec.builder().queueName("q").build());
        db.sql("select {schema}.worker_heartbeat('dead', '{\"implementation\": \"pgworker\"}')")
                .query()
                .singleRow();
        lock("dead");
        db.sql("update {schema}._private_job_queues set locked_at = now(), locked_by = 'dead'")
                .update();
        assertThat(cancel(job)).isEqualTo(State.REQUESTED);
        assertThat(cancel(queued)).isEqualTo(State.REQUESTED);

        db.operations().forceUnlockWorkers(List.of("dead"));

        assertThat(await(job)).isEqualTo(State.CANCELLED);
        assertThat(await(queued)).isEqualTo(State.CANCELLED);
        assertThat(db.jobs()).isZero();
        assertThat(db.sql("select count(*) from {schema}._private_job_queues where locked_by is not null")
                        .query(Long.class)
                        .single())
                .isZero();
    }

    // Keys

    @Test
    void addingUnderAKeyMayCancelTheRunningHolder() throws Exception {
        start(this::sleep);
        JobSpec replacing = JobSpec.builder()
                .jobKey("k")
                .jobKeyMode(JobKeyMode.REPLACE_AND_CANCEL)
                .queueName("q")
                .build();
        Job first = add(replacing);
        JobContext context = running();

        Job second = add(replacing);

        assertThat(second.id()).isNotEqualTo(first.id());
        assertThat(await(first)).isEqualTo(State.CANCELLED);
        assertThat(context.isCancelled()).isTrue();
        assertThat(running().job().id()).isEqualTo(second.id());
        assertThat(db.changes().cancel("k")).map(Cancellation::jobId).hasValue(second.id());
        assertThat(await(second)).isEqualTo(State.CANCELLED);
        assertThat(db.changes().cancel("k")).isEqualTo(Optional.empty());
    }

    @Test
    void addingUnderAKeyReplacesAWaitingHolder() {
        JobSpec replacing = JobSpec.builder()
                .jobKey("k")
                .jobKeyMode(JobKeyMode.REPLACE_AND_CANCEL)
                .runIn(Duration.ofHours(1))
                .build();
        Job first = add(replacing);

        Job second = add(replacing);

        assertThat(second.id()).isEqualTo(first.id());
        assertThatThrownBy(() -> db.scheduler().addJobs(List.of(JobRequest.of(WORK, 1, replacing))))
                .hasMessageContaining("REPLACE or PRESERVE_RUN_AT");
    }

    // The history

    @Test
    void theHistoryTellsCancelledFromRemovedAndSucceeded() throws Exception {
        start(
                this::sleep,
                TaskOptions.DEFAULT,
                settings()
                        .history(dev.pgworker.history.HistorySettings.builder()
                                .enabled(true)
                                .build()));
        Awaitility.await()
                .until(() -> db.sql("select enabled from {schema}.pgworker_history_settings")
                        .query(Boolean.class)
                        .single());
        Job waiting = add(JobSpec.builder().runIn(Duration.ofHours(1)).build());
        Job running = add(JobSpec.builder().jobKey("k").build());
        running();
        Job foreign = add(JobSpec.builder().runIn(Duration.ofHours(1)).build());
        db.sql("update {schema}._private_jobs set locked_at = now(), locked_by = 'pool-1', attempts = 1 where id = ?")
                .param(foreign.id())
                .update();

        db.changes().cancel(List.of(waiting.id(), running.id(), foreign.id()));
        assertThat(await(running)).isEqualTo(State.CANCELLED);
        db.sql("update {schema}._private_jobs set last_error = 'no', locked_at = null, locked_by = null where id = ?")
                .param(foreign.id())
                .update();
        tend();

        assertThat(outcomes(waiting)).containsExactly("removed");
        assertThat(outcomes(running)).containsExactly("cancelled");
        assertThat(outcomes(foreign)).containsExactly("cancelled");
    }

    private List<String> outcomes(Job job) {
        return db.sql("select outcome from {schema}.pgworker_history where job_id = ? order by ended_at")
                .param(job.id())
                .query(String.class)
                .list();
    }

    @Test
    void aTriggerThatKeepsTheRowDoesNotKeepTheJobRunning() throws Exception {
        start(this::sleep);
        Job job = add(JobSpec.builder().queueName("q").build());
        running();
        db.sql("""
                create function {schema}.keep() returns trigger language plpgsql as $$
                begin raise exception 'kept on purpose'; end $$""").update();
        db.sql(
                        "create trigger keep before delete on {schema}._private_jobs for each row execute function {schema}.keep()")
                .update();

        assertThat(cancel(job)).isEqualTo(State.REQUESTED);

        assertThat(await(job)).isEqualTo(State.CANCELLED);
        assertThat(db.queries().find(job.id())).hasValueSatisfying(kept -> {
            assertThat(kept.lockedBy()).isNull();
            assertThat(kept.lastError()).isEqualTo("Cancelled while running");
        });
        Awaitility.await()
                .until(() -> db.sql("select locked_by is null from {schema}._private_job_queues")
                        .query(Boolean.class)
                        .single());
        assertThatThrownBy(() -> db.changes().cancel(List.of(job.id()))).hasMessageContaining("cancel jobs");
    }

    @Test
    void aReadOnlyTransactionIsRefusedByName() {
        Job job = add();
        TransactionTemplate readOnly = new TransactionTemplate(new JdbcTransactionManager(db.dataSource()));
        readOnly.setReadOnly(true);

        assertThatThrownBy(() -> readOnly.executeWithoutResult(status -> cancel(job)))
                .hasMessageContaining("cancel jobs");
        readOnly.executeWithoutResult(status ->
                assertThat(db.queries().cancellations(List.of(job.id()))).isEmpty());
    }
}
