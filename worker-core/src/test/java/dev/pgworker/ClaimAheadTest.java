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
import java.util.stream.IntStream;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
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
    void aClaimThatBeginsAtAFrontFindsWhatLiesBeforeItOnlyIfItIsNotFilled() {
        addAll(400, 100);
        List<Long> ids = db.sql("select id from {schema}._private_jobs order by id")
                .query(Long.class)
                .list();
        db.sql("""
                        update {schema}._private_jobs j set run_at = run_at - interval '1 minute'
                        from {schema}._private_job_queues q
                        where q.id = j.job_queue_id and substr(q.queue_name, 2)::int < 50
                        """).update();
        String claim = """
                select id from {schema}.pgworker_claim('w', array(select id from {schema}._private_tasks), ?, null, array[10],
                  front_level => 0, front_run_at => (select max(run_at) from {schema}._private_jobs), front_id => ?)
                """;

        assertThat(db.sql(claim).params(20, ids.get(50)).query(Long.class).list())
                .as("five queues from there on")
                .containsExactlyElementsOf(IntStream.range(0, 20)
                        .mapToObj(i -> ids.get(i / 5 * 100 + 50 + i % 5))
                        .toList());
        assertThat(db.sql(claim).params(380, ids.get(50)).query(Long.class).list())
                .hasSize(380);
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
    void aCompletionClaimsAsManyOfAQueueAsItIsToldButNotPastOneThatSomebodyHolds() throws Exception {
        addAll(7, 1);
        List<Long> ids = db.sql("select id from {schema}._private_jobs order by id")
                .query(Long.class)
                .list();
        assertThat(claim()).containsExactly(ids.get(0));
        assertThat(complete(ids.get(0), 2, false)).containsExactly(ids.get(1), ids.get(2));
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(
                    db.schema().in("select id from {schema}._private_jobs where id = " + ids.get(4) + " for update"));
            assertThat(complete(ids.get(1), 3, true)).containsExactly(ids.get(3));
            other.rollback();
        }
        // The queue stays locked as long as it is said to go on, and is freed by the last of its jobs.
        assertThat(complete(ids.get(2), 0, true)).isEmpty();
        assertThat(lockedQueues()).isEqualTo(1);
        assertThat(complete(ids.get(3), 0, false)).isEmpty();
        assertThat(lockedQueues()).isZero();
        assertThat(claim()).containsExactly(ids.get(4));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1000})
    void aClaimTakesRunsOfQueuesInTheOrderOfAllJobs(int breadth) {
        addAll(9, 3);
        List<Long> ids = db.sql("select id from {schema}._private_jobs order by id")
                .query(Long.class)
                .list();

        assertThat(claimRuns(4, 3, breadth)).containsExactly(ids.get(0), ids.get(1), ids.get(2), ids.get(3));
        assertThat(lockedQueues()).isEqualTo(3);
        assertThat(claimRuns(4, 3, breadth)).isEmpty();
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

    @ParameterizedTest
    @ValueSource(ints = {0, 20, 1000})
    void aClaimOfRunsFindsEnoughAmongManyQueuesWithOneJobEach(int breadth) {
        addAll(300, 300);

        assertThat(claimRuns(100, 50, breadth)).hasSize(100);
        assertThat(claimRuns(100, 50, breadth)).hasSize(100);
        assertThat(claimRuns(200, 50, breadth)).hasSize(100);
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

    @Test
    void aClaimWithFloorsPassesOverWhatLiesBelowThemAndOtherPriorities() {
        addAll(7, 0);
        List<Long> ids = db.sql("select id from {schema}._private_jobs order by id")
                .query(Long.class)
                .list();
        int[] priorities = {-2, -1, 0, 0, 0, 0, 3};
        for (int i = 0; i < 7; i++) {
            db.sql("update {schema}._private_jobs set priority = ?, run_at = ?::timestamptz where id = ?")
                    .params(priorities[i], i == 2 ? "2026-01-01" : "2026-01-02", ids.get(i))
                    .update();
        }
        String claim = """
                select id from {schema}.pgworker_claim('w', array(select id from {schema}._private_tasks), 10,
                  levels => array[-1, 0], floor_run_ats => array['-infinity', '2026-01-02']::timestamptz[],
                  floor_ids => array[0, ?], strays => ?::bigint[])
                """;

        assertThat(db.sql(claim)
                        .params(ids.get(4), "{" + ids.get(6) + "," + ids.get(4) + ",7777777}")
                        .query(Long.class)
                        .list())
                .containsExactly(ids.get(1), ids.get(4), ids.get(5), ids.get(6));
        assertThat(db.sql(claim).params(ids.get(4), null).query(Long.class).list())
                .as("only the time")
                .containsExactly((Long) null);
        assertThat(claim()).containsExactly(ids.get(0), ids.get(2), ids.get(3));
    }

    /** The entries of finished jobs stay in the index as long as a snapshot may see them. */
    @Test
    void aClaimWithFloorsReadsNothingOfWhatFinishedJobsLeftBehind() throws Exception {
        addAll(5, 0);
        try (Connection holder = db.dataSource().getConnection();
                Statement statement = holder.createStatement()) {
            holder.setAutoCommit(false);
            holder.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            statement.execute("select 1");
            db.sql(
                            "insert into {schema}._private_jobs (task_id, payload, run_at) select task_id, '1', now() - interval '1 hour'"
                                    + " from {schema}._private_jobs cross join generate_series(1, 40000)")
                    .update();
            db.sql("delete from {schema}._private_jobs where run_at < now() - interval '1 minute'")
                    .update();

            String call = "{schema}.pgworker_claim('w', array(select id from {schema}._private_tasks), 1";
            long everywhere = buffers(call + ")");
            long atFloors = buffers(call + ", levels => array[-5, 0], floor_ids => array[0, 0],"
                    + " floor_run_ats => array[now() - interval '1 minute', now() - interval '1 minute'])");
            long nextEverywhere =
                    buffers("{schema}.pgworker_next_due(array(select id from {schema}._private_tasks), 0)");
            long nextAtFloors = buffers(
                    "{schema}.pgworker_next_due(array(select id from {schema}._private_tasks), 0, array[-5, 0])");

            assertThat(everywhere).isGreaterThan(3_000);
            assertThat(atFloors).isLessThan(300);
            assertThat(nextEverywhere).isGreaterThan(1_000);
            assertThat(nextAtFloors).isLessThan(300);
            holder.rollback();
        }
    }

    /** Returns how many blocks a call touches; the first one of a session also reads catalogs. */
    private long buffers(String call) throws Exception {
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            String explain = db.schema().in("explain (analyze, buffers, format json) select * from " + call);
            statement.executeQuery(explain).close();
            connection.rollback();
            try (var row = statement.executeQuery(explain)) {
                row.next();
                var plan = new tools.jackson.databind.json.JsonMapper()
                        .readTree(row.getString(1))
                        .path(0)
                        .path("Plan");
                return plan.path("Shared Hit Blocks").asLong()
                        + plan.path("Shared Read Blocks").asLong();
            } finally {
                connection.rollback();
            }
        }
    }

    @Test
    void aLookBelowTheFloorsFindsPrioritiesAndStrays() {
        addAll(5, 0);
        List<Long> ids = db.sql("select id from {schema}._private_jobs order by id")
                .query(Long.class)
                .list();
        db.sql("update {schema}._private_jobs set run_at = '2026-01-01'").update();
        db.sql("update {schema}._private_jobs set priority = 5, run_at = '2999-01-01' where id = ?")
                .param(ids.get(0))
                .update();
        db.sql("update {schema}._private_jobs set run_at = '2025-01-01' where id = ?")
                .param(ids.get(4))
                .update();

        assertThat(db.sql("""
                        select b.levels, b.strays from {schema}.pgworker_look_below(array(select id from {schema}._private_tasks), null,
                          array[0, 5], '{2026-01-01, 2999-01-02}', array[?, 0], 10, 10) b
                        """)
                        .param(ids.get(2))
                        .query((row, number) -> row.getString(1) + row.getString(2))
                        .single())
                .isEqualTo("{0,5}{" + ids.get(4) + "," + ids.get(1) + "}");
    }

    private List<Long> claimRuns(int wanted, int run) {
        return claimRuns(wanted, run, 0);
    }

    private List<Long> claimRuns(int wanted, int run, int breadth) {
        return db.sql("""
                        select id from {schema}.pgworker_claim('w', array(select id from {schema}._private_tasks), ?, null,
                          array[?::int], breadth => ?)
                        """).params(wanted, run, breadth).query(Long.class).list();
    }

    private List<Long> claim() {
        return db.sql("select id from {schema}.pgworker_claim('w', array(select id from {schema}._private_tasks), 5)")
                .query(Long.class)
                .list();
    }

    private List<Long> complete(long id, int ahead, boolean goesOn) {
        return db.sql("""
                        select id from {schema}.pgworker_complete('w', array[?::bigint],
                          array(select locked_at from {schema}._private_jobs where id = ?), null,
                          array(select id from {schema}._private_tasks), ?, null, array[?::int],
                          case when ? then array[?::bigint] end)
                        where outcome = 'claimed'
                        """)
                .params(id, id, ahead, ahead, goesOn, id)
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
