package dev.pgworker;

import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobStarted;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.ClaimSql;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Fast jobs are claimed ahead, several of a queue at a time, and yet each runs once and every queue is serial. */
@Tag("thorough")
@Tag("any-postgres")
class ClaimAheadTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema(40);

    private final RecordingListener events = new RecordingListener();

    /** Every execution: job ids by queue, in the order of their starts; "" for none. */
    private final Map<String, List<Long>> ledger = new ConcurrentHashMap<>();

    private final Map<String, AtomicInteger> running = new ConcurrentHashMap<>();
    private final AtomicInteger overlaps = new AtomicInteger();

    @Test
    void everyJobRunsOnceAndInTheOrderOfItsQueueWhileWorkersComeAndGo() {
        int queues = 30;
        int jobs = 6_000;
        addAll(jobs, queues);
        Worker leaving = db.start(worker(4));
        db.start(worker(4));
        events.await(JobCompleted.class, jobs / 4);
        leaving.stop();
        db.start(worker(2));
        events.await(JobCompleted.class, jobs);

        assertSerial(jobs);
    }

    @Test
    void everyJobRunsOnceAndInTheOrderOfItsQueueAmongManyQueuesThoughAWorkerDies() {
        int queues = 700;
        int jobs = 10_000;
        addAll(jobs, queues);
        // Nobody runs these until the dead worker is found.
        assertThat(claimRuns(200, 20)).hasSize(200);
        assertThat(lockedQueues()).as("runs").isLessThan(40);
        Worker leaving = db.start(worker(4));
        db.start(worker(4));
        events.await(JobCompleted.class, jobs / 3);
        leaving.stop();
        db.start(worker(2));
        db.sql("select {schema}.force_unlock_workers(array['w'])").query().singleRow();
        events.await(JobCompleted.class, jobs);

        assertSerial(jobs);
    }

    @Test
    void failuresLetTheRestOfARunGoOn() {
        int jobs = 600;
        addAll(jobs, 1);
        db.start(db.worker().settings(settings(4)).listener(events).task(WORK, (n, context) -> {
            record(context);
            if (n % 10 == 0) {
                throw JobControlException.failPermanently("on purpose");
            }
        }));
        events.await(JobCompleted.class, jobs - jobs / 10);

        assertThat(ledger.get("q0")).hasSize(jobs).isSorted();
        awaitFreeQueues();
    }

    @Test
    void transactionalHandlersFreeTheirQueueWhenItsJobsAreDone() {
        int jobs = 600;
        addAll(jobs, 3);
        TaskRegistration task = TaskRegistration.of(WORK, (n, context) -> record(context))
                .with(TaskOptions.DEFAULT.withTransactional(true));
        db.start(db.worker()
                .settings(settings(4))
                .listener(events)
                .transactionManager(new DataSourceTransactionManager(db.dataSource()))
                .tasks(List.of(task)));
        events.await(JobCompleted.class, jobs);

        assertSerial(jobs);
    }

    @Test
    void jobsBehindAHandlerThatSuddenlyTakesLongAreGivenToAnotherWorker() {
        CountDownLatch mayEnd = new CountDownLatch(1);
        Worker stuck =
                db.start(db.worker().settings(settings(1)).listener(events).task(WORK, (n, context) -> {
                    if (n == -1) {
                        mayEnd.await();
                    }
                }));
        addAll(400, 0);
        events.await(JobCompleted.class, 400);
        String stuckId = Objects.requireNonNull(stuck.id());
        db.sql(
                        "select {schema}.add_jobs(array_agg(('work', case when n = 1 then '-1' else '7000' end, null, null, null, null,"
                                + " null, null)::{schema}.job_spec order by n)) from generate_series(1, 30) n")
                .query()
                .listOfRows();
        events.await(JobStarted.class, e -> e.job().payload().equals("-1"));

        db.start(worker(2));

        events.await(JobCompleted.class, 429);
        assertThat(events.all(JobCompleted.class).stream()
                        .filter(e -> e.job().payload().equals("7000"))
                        .map(e -> e.workerId())
                        .toList())
                .hasSize(29)
                .doesNotContain(stuckId);
        mayEnd.countDown();
    }

    @Test
    void aClaimTakesRunsOfTheFirstQueues() {
        addAll(9, 3);
        List<Long> ids = db.sql("select id from {schema}._private_jobs order by id")
                .query(Long.class)
                .list();

        assertThat(claimRuns(4, 3)).containsExactly(ids.get(0), ids.get(1), ids.get(3), ids.get(6));
        assertThat(lockedQueues()).isEqualTo(2);
        assertThat(claimRuns(4, 3)).containsExactly(ids.get(2), ids.get(5), ids.get(8));
        assertThat(claimRuns(4, 3)).isEmpty();
    }

    @Test
    void aRunEndsBeforeAJobThatSomebodyHolds() throws Exception {
        addAll(4, 1);
        List<Long> ids = db.sql("select id from {schema}._private_jobs order by id")
                .query(Long.class)
                .list();
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(
                    db.schema().in("select id from {schema}._private_jobs where id = " + ids.get(2) + " for update"));
            assertThat(claimRuns(10, 4)).containsExactly(ids.get(0), ids.get(1));
            other.rollback();
        }
    }

    @Test
    void aClaimOfRunsFindsEnoughAmongManyQueuesWithOneJobEach() {
        addAll(300, 300);

        assertThat(claimRuns(100, 50)).hasSize(100);
        assertThat(claimRuns(100, 50)).hasSize(100);
        assertThat(claimRuns(200, 50)).hasSize(100);
    }

    @Test
    void jobsWithoutAQueueTakeTheirPlaceAmongRuns() {
        addAll(4, 1);
        addAll(2, 0);
        db.sql("update {schema}._private_jobs set run_at = run_at - interval '1 minute' where job_queue_id is null")
                .update();
        List<Long> ids = db.sql("select id from {schema}._private_jobs order by id")
                .query(Long.class)
                .list();

        assertThat(claimRuns(3, 4)).containsExactly(ids.get(4), ids.get(5), ids.get(0));
    }

    private List<Long> claimRuns(int wanted, int run) {
        return db.sql("select id from " + ClaimSql.claim("'w'", String.valueOf(wanted), "null", String.valueOf(run))
                        + " c order by priority, run_at, id")
                .query(Long.class)
                .list();
    }

    private void addAll(int jobs, int queues) {
        List<JobRequest> requests = new ArrayList<>();
        for (int i = 0; i < jobs; i++) {
            JobSpec spec = queues == 0
                    ? JobSpec.DEFAULT
                    : JobSpec.builder().queueName("q" + i % queues).build();
            requests.add(JobRequest.of(WORK, i, spec));
        }
        db.scheduler().addJobs(requests);
    }

    private Worker.Builder worker(int concurrency) {
        return db.worker().settings(settings(concurrency)).listener(events).task(WORK, (n, context) -> record(context));
    }

    private static WorkerSettings settings(int concurrency) {
        return WorkerSettings.builder()
                .concurrency(concurrency)
                .localQueueTtl(Duration.ofMillis(200))
                .build();
    }

    private void record(JobContext context) {
        Job job = context.job();
        String queue = job.queueName() == null ? "" : job.queueName();
        AtomicInteger ofQueue = running.computeIfAbsent(queue, q -> new AtomicInteger());
        if (ofQueue.incrementAndGet() > 1 && !queue.isEmpty()) {
            overlaps.incrementAndGet();
        }
        ledger.computeIfAbsent(queue, q -> new CopyOnWriteArrayList<>()).add(job.id());
        ofQueue.decrementAndGet();
    }

    private void assertSerial(int jobs) {
        assertThat(overlaps).hasValue(0);
        assertThat(ledger.values()).allSatisfy(ids -> assertThat(ids).isSorted().doesNotHaveDuplicates());
        assertThat(ledger.values().stream().mapToInt(List::size).sum()).isEqualTo(jobs);
        awaitFreeQueues();
        assertThat(db.jobs()).isZero();
    }

    private void awaitFreeQueues() {
        Awaitility.await().until(() -> lockedQueues() == 0);
    }

    private int lockedQueues() {
        return db.sql("select count(*) from {schema}._private_job_queues where locked_by is not null")
                .query(Integer.class)
                .single();
    }
}
