package dev.pgworker;

import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.JobStarted;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.event.WorkerEvent.WorkerStarted;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.TaskHandler;
import dev.pgworker.testing.ClaimSql;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Jobs of a named queue run one at a time, in order, without gaps, whichever workers there are. */
class QueueTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);
    private static final JobSpec IN_QUEUE = JobSpec.builder().queueName("q").build();

    @RegisterExtension
    final TestSchema db = new TestSchema(40);

    private final RecordingListener events = new RecordingListener();

    @ParameterizedTest
    @ValueSource(ints = {1, 4})
    @Tag("thorough")
    void runsAQueueInOrderAndBackToBack(int workers) {
        int jobs = 200;
        Random random = new Random(workers);
        Instant past = Instant.now().minusSeconds(1000);
        List<Job> expected = new ArrayList<>();
        for (int i = 0; i < jobs; i++) {
            expected.add(db.scheduler()
                    .addJob(
                            WORK,
                            i,
                            IN_QUEUE.toBuilder()
                                    .priority(random.nextInt(3))
                                    .runAt(past.plusSeconds(random.nextInt(4)))
                                    .build()));
        }
        expected.sort(
                Comparator.comparingInt(Job::priority).thenComparing(Job::runAt).thenComparingLong(Job::id));
        List<Long> order = new CopyOnWriteArrayList<>();
        AtomicInteger running = new AtomicInteger();
        AtomicInteger overlaps = new AtomicInteger();
        List<Long> begun = new CopyOnWriteArrayList<>();
        for (int i = 0; i < workers; i++) {
            start(4, (n, context) -> {
                begun.add(System.nanoTime());
                order.add(context.job().id());
                if (running.getAndIncrement() > 0) {
                    overlaps.incrementAndGet();
                }
                // The job's own duration.
                Thread.sleep(20);
                running.decrementAndGet();
            });
        }

        events.await(JobCompleted.class, jobs);
        double seconds = (System.nanoTime() - begun.get(0)) / 1e9;

        System.out.printf(
                "%d jobs of 20 ms in one queue, %d worker(s): %.2f s, %.1f jobs/s%n",
                jobs, workers, seconds, jobs / seconds);
        assertThat(order).isEqualTo(expected.stream().map(Job::id).toList());
        assertThat(overlaps).hasValue(0);
        assertThat(lockedQueues()).isZero();
    }

    @Test
    void aQueueFreedByAWorkerThatBecomesFullIsTakenByAnotherAtOnce() throws Exception {
        Task<Integer> better = Task.of("better", Integer.class);
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch mayFail = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        db.scheduler().addJob(WORK, 1, IN_QUEUE);
        Worker full = start(
                1,
                (n, context) -> {
                    started.countDown();
                    mayFail.await();
                    throw JobControlException.failPermanently("on purpose");
                },
                builder -> builder.task(better, (n, context) -> mayEnd.await()));
        started.await();
        Worker other = start(2, (n, context) -> {});
        // The first worker prefers this job to the next one of its queue; the other one cannot run it.
        db.scheduler().addJob(better, 0, JobSpec.builder().priority(-1).build());
        db.scheduler().addJob(WORK, 2, IN_QUEUE);
        awaitThatItLooksInVain();

        mayFail.countDown();

        assertThat(events.await(JobCompleted.class, e -> payload(e.job()) == 2).workerId())
                .isEqualTo(other.id());
        events.await(JobStarted.class, e -> e.job().taskIdentifier().equals("better"));
        assertThat(full.isRunning()).isTrue();
        mayEnd.countDown();
    }

    @Test
    void aQueueFreedByAStoppingWorkerIsTakenByAnotherAtOnce() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        db.scheduler().addJob(WORK, 1, IN_QUEUE);
        Worker stopping = start(1, (n, context) -> {
            started.countDown();
            mayEnd.await();
        });
        started.await();
        Worker other = start(2, (n, context) -> {});
        db.scheduler().addJob(WORK, 2, IN_QUEUE);
        awaitThatItLooksInVain();

        Thread stop = new Thread(stopping::stop);
        stop.start();
        Awaitility.await()
                .pollInterval(Duration.ofMillis(5))
                .until(() -> Arrays.stream(stop.getStackTrace())
                        .anyMatch(frame -> frame.getMethodName().equals("awaitNoRunners")));
        mayEnd.countDown();

        assertThat(events.await(JobCompleted.class, e -> payload(e.job()) == 2).workerId())
                .isEqualTo(other.id());
        stop.join();
    }

    @Test
    void aQueueWhoseRowSomebodyHeldForAMomentIsLookedAtAgainWithoutAWord() throws Exception {
        db.scheduler().addJob(WORK, 1, IN_QUEUE);
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(db.schema().in("select from {schema}._private_job_queues for update"));
            start(2, (n, context) -> {});
            awaitThatItLooksInVain();
            assertThat(db.jobs()).isEqualTo(1);
            other.rollback();
            other.setAutoCommit(true);
        }

        events.await(JobCompleted.class, e -> payload(e.job()) == 1);
    }

    @Test
    void aTransactionThatHoldsTheRowOfAQueueHoldsUpNothingElse() throws Exception {
        CountDownLatch mayEnd = new CountDownLatch(1);
        start(5, (n, context) -> {
            if (n == 1) {
                mayEnd.await();
            }
        });
        db.scheduler().addJob(WORK, 1, IN_QUEUE);
        events.await(JobStarted.class);
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(
                    db.schema().in("select from {schema}._private_job_queues where locked_at is not null for update"));
            mayEnd.countDown();
            for (int n = 2; n <= 20; n++) {
                db.scheduler().addJob(WORK, n);
            }

            events.await(JobCompleted.class, 20);
            assertThat(lockedQueues()).isEqualTo(1);
            other.rollback();
        }
        db.scheduler().addJob(WORK, 21, IN_QUEUE);
        events.await(JobCompleted.class, 21);
    }

    // Unlocking leaves run_at alone; recovery sets it, so the recovered job goes behind those that were due before.
    @ParameterizedTest
    @CsvSource({"force_unlock_workers,1,2", "recover_dead_worker_jobs,2,1"})
    void aQueueOfACrashedWorkerIsTakenByAnotherAtOnce(String call, int first, int second) {
        List<Integer> order = new CopyOnWriteArrayList<>();
        db.scheduler().addJob(WORK, 1, IN_QUEUE);
        db.scheduler().addJob(WORK, 2, IN_QUEUE);
        claimAs("crashed");
        start(2, (n, context) -> order.add(n));
        db.scheduler().addJob(WORK, 3);
        events.await(JobCompleted.class);
        assertThat(order).as("while the queue is locked").containsExactly(3);

        db.sql("select {schema}." + call + "(array['crashed'])").query().singleRow();

        events.await(JobCompleted.class, 3);
        assertThat(order).containsExactly(3, first, second);
        assertThat(lockedQueues()).isZero();
    }

    @ParameterizedTest
    @ValueSource(strings = {"force_unlock_workers", "recover_dead_worker_jobs"})
    void aQueueWhoseCrashedWorkerHasNoJobOfItIsFreedToo(String call) {
        db.scheduler().addJob(WORK, 2, IN_QUEUE);
        db.sql("update {schema}._private_job_queues set locked_by = 'crashed', locked_at = now()")
                .update();
        start(2, (n, context) -> {});
        db.scheduler().addJob(WORK, 3);
        events.await(JobCompleted.class, e -> payload(e.job()) == 3);
        assertThat(events.all(JobCompleted.class)).hasSize(1);

        db.sql("select {schema}." + call + "(array['crashed'])").query().singleRow();

        events.await(JobCompleted.class, e -> payload(e.job()) == 2);
    }

    @Test
    void aFailingHeadLetsTheNextJobGo() {
        AtomicBoolean failing = new AtomicBoolean(true);
        List<Integer> order = new CopyOnWriteArrayList<>();
        for (int i = 1; i <= 3; i++) {
            db.scheduler().addJob(WORK, i, IN_QUEUE);
        }
        start(4, (n, context) -> {
            order.add(n);
            if (n == 1 && failing.getAndSet(false)) {
                throw new IllegalStateException("on purpose");
            }
        });

        events.await(JobFailed.class);
        events.await(JobCompleted.class, 2);
        assertThat(order).containsExactly(1, 2, 3);

        db.sql("select {schema}.reschedule_jobs(array(select id from {schema}.jobs), run_at := now())")
                .query()
                .singleRow();
        events.await(JobCompleted.class, 3);
        assertThat(order).containsExactly(1, 2, 3, 1);
    }

    /**
     * The write of the first job's outcome looks for the next one before that is added, and claims that are told of that one look
     * before the write is visible, whose commit may take long.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aJobAddedWhileTheWriteThatFreesItsQueueIsCommittedIsRunAtOnce(boolean byAnother) throws Exception {
        Task<Integer> next = byAnother ? Task.of("next", Integer.class) : WORK;
        db.sql("""
                create function {schema}.wait() returns trigger language plpgsql as $$
                begin
                  perform pg_advisory_xact_lock_shared(to_regclass('{schema}._private_job_queues')::oid::bigint);
                  return null;
                end $$;
                create constraint trigger wait after update on {schema}._private_job_queues deferrable initially deferred
                  for each row when (new.locked_by is null) execute function {schema}.wait()
                """).update();
        Worker first = start(9, (n, context) -> {});
        if (byAnother) {
            startOnNotice(db.worker().settings(onNotice(9)).task(next, (n, context) -> {}));
        }
        try (Connection commits = db.dataSource().getConnection();
                Statement statement = commits.createStatement()) {
            commits.setAutoCommit(false);
            statement.execute(db.schema()
                    .in("select pg_advisory_xact_lock(to_regclass('{schema}._private_job_queues')::oid::bigint)"));
            db.scheduler().addJob(WORK, 1, IN_QUEUE);
            Awaitility.await()
                    .until(() -> db.sql(
                                    "select exists (select from pg_locks where locktype = 'advisory' and not granted"
                                            + " and (classid::bigint << 32) + objid::bigint"
                                            + " = to_regclass('{schema}._private_job_queues')::oid::bigint)")
                            .query(Boolean.class)
                            .single());
            // One announcement, so that whoever has started one of the others looks no more.
            db.scheduler()
                    .addJobs(List.of(JobRequest.of(next, 2, IN_QUEUE), JobRequest.of(next, 3), JobRequest.of(WORK, 4)));
            events.await(JobStarted.class, e -> payload(e.job()) == 3);
            events.await(JobStarted.class, e -> payload(e.job()) == 4);
            commits.rollback();
        }

        events.await(JobCompleted.class, e -> payload(e.job()) == 2);
        assertThat(first.isRunning()).isTrue();
    }

    private static int payload(Job job) {
        return Integer.parseInt(job.payload());
    }

    private void claimAs(String worker) {
        assertThat(db.sql("select count(*) from " + ClaimSql.claim("?", "5") + " c")
                        .param(worker)
                        .query(Integer.class)
                        .single())
                .isEqualTo(1);
    }

    private int lockedQueues() {
        return db.sql("select count(*) from {schema}._private_job_queues where locked_by is not null")
                .query(Integer.class)
                .single();
    }

    /** Lets a worker with two free slots run a job without a queue, after which it knows that the queue is taken. */
    private void awaitThatItLooksInVain() {
        db.scheduler().addJob(WORK, 3);
        events.await(JobCompleted.class, e -> payload(e.job()) == 3);
    }

    private Worker start(int concurrency, TaskHandler<Integer> handler) {
        return start(concurrency, handler, UnaryOperator.identity());
    }

    private Worker start(int concurrency, TaskHandler<Integer> handler, UnaryOperator<Worker.Builder> more) {
        return startOnNotice(
                more.apply(db.worker().settings(onNotice(concurrency)).task(WORK, handler)));
    }

    private static WorkerSettings onNotice(int concurrency) {
        return WorkerSettings.builder()
                .concurrency(concurrency)
                .pollInterval(Duration.ofHours(1))
                .build();
    }

    /** Starts a worker that looks for jobs only when it is told to, and waits until it can be told. */
    private Worker startOnNotice(Worker.Builder builder) {
        Worker worker = db.start(builder.listener(events));
        String id = worker.id();
        events.await(WorkerStarted.class, e -> e.workerId().equals(id));
        events.await(ListenerConnected.class, e -> e.workerId().equals(id));
        return worker;
    }
}
