package dev.pgworker;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.event.WorkerEvent.ClaimsReconciled;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.JobLost;
import dev.pgworker.event.WorkerEvent.JobReturned;
import dev.pgworker.event.WorkerEvent.JobsFetched;
import dev.pgworker.event.WorkerEvent.WorkerStarted;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.task.RetryDelay;
import dev.pgworker.task.TaskHandler;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.InterceptedDataSource;
import dev.pgworker.testing.InterceptedDataSource.Interceptor;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** One job, one answer, one lock or one queue that is bad does not stop a worker, and nothing of it runs twice at once. */
@Tag("thorough")
@Tag("any-postgres")
class OneBadThingTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);
    private static final Task<String> LARGE = Task.of("large", String.class);
    private static final Task<Integer> OTHER = Task.of("other", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();
    private Duration retryDelay = Duration.ofHours(1);

    /** Jobs that wait behind a slow one of their queue take no room, and others may have them after a while. */
    @ParameterizedTest
    @ValueSource(ints = {0, 500})
    void aSlowJobOfAQueueKeepsNobodyElseFromRunning(int localQueueSize) throws Exception {
        CountDownLatch mayEnd = new CountDownLatch(1);
        AtomicInteger others = new AtomicInteger();
        db.start(db.worker()
                .settings(WorkerSettings.builder()
                        .concurrency(4)
                        .localQueueSize(localQueueSize)
                        .localQueueTtl(Duration.ofMillis(300))
                        .shutdownGracePeriod(Duration.ofMillis(100))
                        .build())
                .listener(events)
                .task(WORK, (n, context) -> {
                    if (n == 1_000) {
                        mayEnd.await();
                    }
                })
                .task(OTHER, (n, context) -> others.incrementAndGet()));
        JobSpec queued = JobSpec.builder().queueName("q").build();
        // Fast enough to have the next jobs of the queue claimed together.
        List<JobRequest> requests = new ArrayList<>();
        for (int i = 0; i < 1_300; i++) {
            requests.add(JobRequest.of(WORK, i, queued));
        }
        db.scheduler().addJobs(requests);
        events.await(JobCompleted.class, 1_000);
        requests.clear();
        for (int i = 0; i < 100; i++) {
            requests.add(JobRequest.of(OTHER, i, JobSpec.builder().build()));
        }
        db.scheduler().addJobs(requests);

        Awaitility.await().until(() -> others.get() == 100);
        // Whatever was claimed with the slow job has been given back, and it alone is held.
        Awaitility.await()
                .until(() -> db.sql("select count(*) from {schema}.jobs where locked_at is not null")
                                .query(Integer.class)
                                .single()
                        == 1);
        mayEnd.countDown();
        events.await(JobCompleted.class, 1_400);
    }

    /** The first run is given up, in a statement whose answer is lost; the second is running when it is repeated. */
    @ParameterizedTest
    @CsvSource({",pgworker_release(", "q,pgworker_free_queues("})
    void aReleaseThatIsRepeatedDoesNotTouchTheNextRun(String queue, String released) throws Exception {
        AtomicInteger lost = new AtomicInteger();
        AtomicInteger running = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        AtomicInteger runs = new AtomicInteger();
        CountDownLatch secondRuns = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        retryDelay = Duration.ZERO;
        start(
                (call, proceed) -> {
                    if (call.is("executeQuery", released) && lost.get() > 0) {
                        // Not before the next run.
                        assertThat(secondRuns.await(120, TimeUnit.SECONDS)).isTrue();
                    }
                    Object answer = proceed.proceed();
                    if (call.is("executeQuery", released) && lost.getAndIncrement() == 0) {
                        call.connection().abort(Runnable::run);
                        throw new SQLException("The answer is lost on purpose", "08006");
                    }
                    return answer;
                },
                2,
                (n, context) -> {
                    most.accumulateAndGet(running.incrementAndGet(), Math::max);
                    try {
                        if (runs.incrementAndGet() == 1) {
                            throw new IllegalStateException("on purpose");
                        }
                        secondRuns.countDown();
                        mayEnd.await();
                    } finally {
                        running.decrementAndGet();
                    }
                });
        Job job = db.scheduler()
                .addJob(WORK, 1, JobSpec.builder().queueName(queue).build());
        secondRuns.await();
        Awaitility.await().until(() -> lost.get() > 1);
        db.scheduler().addJob(WORK, 2);
        Awaitility.await().until(() -> running.get() == 2);

        assertThat(db.sql("select locked_at is not null from {schema}.jobs where id = ?")
                        .param(job.id())
                        .query(Boolean.class)
                        .single())
                .isTrue();
        mayEnd.countDown();
        events.await(JobCompleted.class, 2);
        assertThat(runs).hasValue(3);
        assertThat(most).hasValue(2);
        assertThat(db.sql("select count(*) from {schema}._private_job_queues where locked_at is not null")
                        .query(Integer.class)
                        .single())
                .isZero();
    }

    /** As after a fault that nobody has thought of. */
    @Test
    void whatIsHeldWithoutTheWorkersKnowledgeIsGivenBack() {
        Worker worker = start((call, proceed) -> proceed.proceed(), 2, (n, context) -> {});
        db.sql("insert into {schema}._private_job_queues (queue_name, locked_at, locked_by) values ('q', now(), ?)")
                .param(worker.id())
                .update();
        long id = db.sql("""
                        insert into {schema}._private_jobs (task_id, payload, attempts, locked_at, locked_by)
                        select id, '7', 1, now() - interval '1 minute', ? from {schema}._private_tasks where identifier = 'work'
                        returning id
                        """).param(worker.id()).query(Long.class).single();

        ClaimsReconciled reconciled = events.await(ClaimsReconciled.class);

        assertThat(reconciled.jobs() + reconciled.queues()).isPositive();
        Job completed = events.await(JobCompleted.class).job();
        assertThat(completed.id()).isEqualTo(id);
        assertThat(completed.attempts()).as("the lost claim costs nothing").isEqualTo(1);
        Awaitility.await()
                .until(() -> db.sql("select count(*) from {schema}._private_job_queues where locked_at is not null")
                                .query(Integer.class)
                                .single()
                        == 0);
        assertThat(Objects.requireNonNull(worker.status()).reconciled()).isEqualTo(1);
    }

    @Test
    void whatIsHeldWithoutTheWorkersKnowledgeIsGivenBackByAStop() {
        Worker worker = db.worker().task(WORK, (n, context) -> {}).build();
        worker.start();
        Awaitility.await()
                .until(() -> !db.sql("select id from {schema}._private_tasks")
                        .query(Integer.class)
                        .list()
                        .isEmpty());
        db.sql("""
                insert into {schema}._private_jobs (task_id, payload, attempts, locked_at, locked_by)
                select id, '7', 1, now() - interval '1 minute', ? from {schema}._private_tasks where identifier = 'work'
                """).param(worker.id()).update();

        worker.stop();

        assertThat(db.sql("select count(*) from {schema}._private_jobs where locked_at is null and attempts = 0")
                        .query(Integer.class)
                        .single())
                .isEqualTo(1);
        assertThat(db.sql("select id from {schema}._private_workers")
                        .query(String.class)
                        .list())
                .isEmpty();
    }

    /** Whatever the SQLSTATE says, it is one row that the server refuses to change. */
    @ParameterizedTest
    @ValueSource(strings = {"P0001", "53100"})
    void whatIsHeldWithoutTheWorkersKnowledgeIsGivenBackThoughOneJobCannotBe(String errorCode) {
        Worker worker = start((call, proceed) -> proceed.proceed(), 2, (n, context) -> {});
        db.sql("""
                insert into {schema}._private_jobs (task_id, payload, attempts, locked_at, locked_by)
                select t.id, to_json(p), 1, now() - interval '1 minute', ? from {schema}._private_tasks t, generate_series(1, 3) p
                where t.identifier = 'work'
                """).param(worker.id()).update();
        db.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as $$
                begin
                  if old.payload::text = '1' then raise exception 'not this one' using errcode = '%s'; end if;
                  return new;
                end $$;
                create trigger refuse before update on {schema}._private_jobs for each row execute function {schema}.refuse()
                """.formatted(errorCode)).update();

        events.await(JobCompleted.class, 2);

        String id = worker.id();
        worker.stop();
        assertThat(db.sql("select id from {schema}._private_workers")
                        .query(String.class)
                        .list())
                .as("where a sweep finds what it still holds")
                .containsExactly(id);
    }

    @Test
    void aJobThatSomebodyHasTakenAwayWhileItWaitedIsNotStarted() throws Exception {
        CountDownLatch mayEnd = new CountDownLatch(1);
        List<Integer> ran = new CopyOnWriteArrayList<>();
        db.start(db.worker()
                .settings(WorkerSettings.builder()
                        .concurrency(1)
                        .localQueueTtl(Duration.ofMinutes(1))
                        .shutdownGracePeriod(Duration.ofMillis(100))
                        .build())
                .reconcileInterval(Duration.ofMillis(200))
                .listener(events)
                .task(WORK, (n, context) -> {
                    if (n == 100) {
                        mayEnd.await();
                    }
                    ran.add(n);
                }));
        JobSpec queued = JobSpec.builder().queueName("q").build();
        List<JobRequest> requests = new ArrayList<>();
        for (int i = 0; i < 120; i++) {
            requests.add(JobRequest.of(WORK, i, queued));
        }
        db.scheduler().addJobs(requests);
        Awaitility.await().until(() -> ran.size() == 100);
        Awaitility.await().until(() -> locked() > 1);
        int taken = db.sql("""
                        update {schema}._private_jobs set locked_by = 'other'
                        where locked_at is not null and payload::text <> '100'
                        """).update();

        List<JobLost> lost = events.await(JobLost.class, taken);

        mayEnd.countDown();
        events.await(JobCompleted.class, 120 - taken);
        assertThat(lost).noneMatch(e -> ran.contains(Integer.parseInt(e.job().payload())));
    }

    private int locked() {
        return db.sql("select count(*) from {schema}.jobs where locked_at is not null")
                .query(Integer.class)
                .single();
    }

    /** It is not cancelled by its client before it takes effect, and would commit after the worker is gone. */
    @Test
    void aClaimThatWaitsForALockDoesNotOutliveTheWorker() throws Exception {
        AtomicBoolean armed = new AtomicBoolean();
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            Worker worker = start(
                    (call, proceed) -> {
                        if (call.is("executeQuery", "pgworker_claim(") && armed.getAndSet(false)) {
                            statement.execute(
                                    db.schema().in("lock table {schema}._private_jobs in access exclusive mode"));
                        }
                        return proceed.proceed();
                    },
                    2,
                    (n, context) -> {});
            String id = worker.id();
            statement.execute(db.schema()
                    .in("insert into {schema}._private_jobs (task_id, payload) select id, '1' from"
                            + " {schema}._private_tasks where identifier = 'work'"));
            armed.set(true);
            db.sql("select {schema}.pgworker_wake(1, now(), '0')").query().listOfRows();
            Awaitility.await().until(() -> claims("wait_event_type = 'Lock'") > 0);

            worker.stop();

            other.commit();
            Awaitility.await().until(() -> claims("state = 'active'") == 0);
            assertThat(db.sql("select locked_by from {schema}.jobs")
                            .query(String.class)
                            .list())
                    .doesNotContain(Objects.requireNonNull(id));
        }
    }

    private int claims(String condition) {
        return db.sql("select count(*) from pg_stat_activity where " + condition
                        + " and query like '%' || ? || '%pgworker_claim%' and pid <> pg_backend_pid()")
                .param(db.schema().name())
                .query(Integer.class)
                .single();
    }

    @Test
    void aSinglePassEndsThoughJobsOutliveTheirTimeInTheLocalQueue() throws Exception {
        List<JobRequest> requests = new ArrayList<>();
        JobSpec queued = JobSpec.builder().queueName("q").build();
        for (int i = 0; i < 300; i++) {
            requests.add(JobRequest.of(WORK, i, queued));
        }
        db.scheduler().addJobs(requests);
        AtomicInteger ran = new AtomicInteger();
        Worker worker = db.worker()
                .settings(WorkerSettings.builder()
                        .concurrency(2)
                        .localQueueTtl(Duration.ofMillis(1))
                        .build())
                .listener(events)
                .task(WORK, (n, context) -> {
                    ran.incrementAndGet();
                    if (n % 50 == 49) {
                        new CountDownLatch(1).await(20, TimeUnit.MILLISECONDS);
                    }
                })
                .build();

        worker.runOnce();

        assertThat(ran).hasValue(300);
        assertThat(db.jobs()).isZero();
    }

    /** One row of a claim does not fit into memory, or is otherwise more than the driver can read. */
    @Test
    void aJobWhoseRowCannotBeReadFailsWithTheReasonAndTheOthersRun() {
        Map<Long, Boolean> bad = new ConcurrentHashMap<>();
        List<JobRequest> requests = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            requests.add(JobRequest.of(WORK, i, JobSpec.builder().build()));
        }
        List<Job> jobs = db.scheduler().addJobs(requests);
        bad.put(jobs.get(4).id(), true);
        Map<Thread, Long> row = new ConcurrentHashMap<>();
        start(
                (call, proceed) -> {
                    Object value = proceed.proceed();
                    if (call.is("getLong", "pgworker_claim")) {
                        row.put(Thread.currentThread(), (Long) Objects.requireNonNull(value));
                    } else if (call.is("getString", "pgworker_claim")
                            && call.arguments().contains(5)
                            && bad.containsKey(row.getOrDefault(Thread.currentThread(), 0L))) {
                        throw new OutOfMemoryError("Java heap space, on purpose");
                    }
                    return value;
                },
                4,
                (n, context) -> {});

        JobFailed failed = events.await(JobFailed.class);
        events.await(JobCompleted.class, 9);

        assertThat(failed.job().id()).isEqualTo(jobs.get(4).id());
        assertThat(db.sql("select attempts || ' ' || last_error from {schema}.jobs")
                        .query(String.class)
                        .single())
                .startsWith("1 ")
                .contains("could not be read", "Java heap space");
    }

    /** Large payloads are read several at a time, just before their jobs run; the driver gives the whole answer up. */
    @Test
    void aPayloadThatCannotBeReadCostsTheJobToBlameAnAttempt() {
        List<JobRequest> requests = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            requests.add(JobRequest.of(
                    LARGE, "x".repeat(10_000), JobSpec.builder().maxAttempts(1).build()));
        }
        List<Job> jobs = db.scheduler().addJobs(requests);
        long bad = jobs.get(4).id();
        Map<Thread, Long> row = new ConcurrentHashMap<>();
        start(
                (call, proceed) -> {
                    Object value = proceed.proceed();
                    if (call.is("getLong", "j.payload")) {
                        row.put(Thread.currentThread(), (Long) Objects.requireNonNull(value));
                    } else if (call.is("getString", "j.payload")
                            && row.getOrDefault(Thread.currentThread(), 0L) == bad) {
                        throw new SQLException("Ran out of memory", "53200", new OutOfMemoryError("on purpose"));
                    }
                    return value;
                },
                4,
                List.of(TaskRegistration.of(LARGE, (text, context) -> {})));

        JobFailed failed = events.await(JobFailed.class);
        events.await(JobCompleted.class, 9);

        assertThat(failed.job().id()).isEqualTo(bad);
        assertThat(db.sql("select attempts || ' ' || last_error from {schema}.jobs")
                        .query(String.class)
                        .single())
                .startsWith("1 ")
                .contains("could not be read", "on purpose");
    }

    /** A handler that waits for its payload is not taken for one that nobody attends to. */
    @Test
    void aPayloadThatTakesLongToReadIsWaitedFor() throws Exception {
        for (int i = 0; i < 2; i++) {
            db.scheduler().addJob(LARGE, "x".repeat(10_000));
        }
        CountDownLatch mayRead = new CountDownLatch(1);
        CountDownLatch looks = new CountDownLatch(12);
        db.start(Worker.builder(new InterceptedDataSource(db.dataSource(), (call, proceed) -> {
                    if (call.is("executeQuery", "j.payload")) {
                        mayRead.await();
                    } else if (call.is("executeQuery", "select j.id, j.locked_at, j.key")) {
                        looks.countDown();
                    }
                    return proceed.proceed();
                }))
                .schema(db.schema())
                .jobScheduler(db.scheduler())
                .listenDataSource(db.dataSource())
                .settings(WorkerSettings.builder().concurrency(1).build())
                .reconcileInterval(Duration.ofMillis(300))
                .listener(events)
                .tasks(List.of(TaskRegistration.of(LARGE, (text, context) -> {}))));
        looks.await();
        mayRead.countDown();

        events.await(JobCompleted.class, 2);
        assertThat(events.all(JobReturned.class)).isEmpty();
    }

    /** What the server says about a row that it cannot send. */
    @Test
    void aJobThatTheServerCannotSendIsPassedOver() {
        List<JobRequest> requests = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            requests.add(JobRequest.of(WORK, i, JobSpec.builder().build()));
        }
        List<Job> jobs = db.scheduler().addJobs(requests);
        long bad = jobs.get(2).id();
        start(
                (call, proceed) -> {
                    if (call.is("executeQuery", "pgworker_claim(")
                            && !call.sql().contains("dry")) {
                        call.connection().setAutoCommit(false);
                        Object value = proceed.proceed();
                        boolean failing = isLocked(call.connection(), bad);
                        if (failing) {
                            call.connection().rollback();
                        } else {
                            call.connection().commit();
                        }
                        call.connection().setAutoCommit(true);
                        if (failing) {
                            throw new SQLException("invalid memory alloc request size", "XX000");
                        }
                        return value;
                    }
                    return proceed.proceed();
                },
                2,
                (n, context) -> {});

        events.await(JobCompleted.class, 4);

        assertThat(db.sql("select id from {schema}.jobs where attempts = 0 and locked_at is null")
                        .query(Long.class)
                        .list())
                .containsExactly(bad);
    }

    /** A trigger or a constraint of somebody's stands in the way of claiming the first job of all, and of a queue. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "P0001", "23514", "40001", "53100", "08006", "57014", "P0004", "25006", "57P01", "57P03", "slow",
                "null", "lie"
            })
    void jobsThatCannotBeClaimedArePassedOver(String how) {
        String refusal = switch (how) {
            case "null" -> "return null";
            case "slow" -> "perform pg_sleep(1.1); raise exception 'not this one'";
            default -> "raise exception 'not this one' using errcode = '" + how + "'";
        };
        JobSpec queued = JobSpec.builder().queueName("q").build();
        Job plain = db.scheduler().addJob(WORK, 0);
        Job first = db.scheduler().addJob(WORK, 1, queued);
        db.scheduler().addJob(WORK, 2, queued);
        db.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as $$
                begin
                  if old.id in (%s, %s) then %s; end if;
                  return new;
                end $$;
                create trigger refuse before update on {schema}._private_jobs for each row execute function {schema}.refuse()
                """.formatted(plain.id(), first.id(), refusal)).update();
        for (int i = 3; i < 8; i++) {
            db.scheduler().addJob(WORK, i);
        }
        List<Integer> ran = new CopyOnWriteArrayList<>();
        start((call, proceed) -> proceed.proceed(), 3, (n, context) -> ran.add(n));

        events.await(JobCompleted.class, 5);
        assertThat(ran).containsExactlyInAnyOrder(3, 4, 5, 6, 7);
        db.sql("drop trigger refuse on {schema}._private_jobs").update();
        events.await(JobCompleted.class, 8);
        assertThat(ran.indexOf(1)).isLessThan(ran.indexOf(2));
    }

    /** More than fit into one claim, of queues and without, and all of them due before the others. */
    @ParameterizedTest
    @ValueSource(ints = {300, 900})
    void manyJobsThatCannotBeClaimedKeepNoOtherFromRunning(int refused) {
        db.sql("select {schema}.add_job('work', '0')").query().listOfRows();
        db.sql("delete from {schema}._private_jobs").update();
        addRefused(refused);
        db.sql("""
                insert into {schema}._private_job_queues (queue_name)
                select 'good ' || q from generate_series(1, 50) q
                """).update();
        db.sql("""
                insert into {schema}._private_jobs (task_id, payload, job_queue_id)
                select t.id, to_json(n), case when n % 2 = 0 then q.id end
                from {schema}._private_tasks t, generate_series(1, 200) n
                join {schema}._private_job_queues q on q.queue_name = 'good ' || (n % 50 + 1)
                """).update();
        start((call, proceed) -> proceed.proceed(), 3, (n, context) -> {});

        events.await(JobCompleted.class, 200);
        db.sql("drop trigger refuse on {schema}._private_jobs").update();
        Awaitility.await().until(() -> db.jobs() == 0);
    }

    /** Jobs with the payload 0, half of them in a hundred queues, due before all others. */
    private void addRefused(int count) {
        db.sql("insert into {schema}._private_job_queues (queue_name) select 'bad ' || q from generate_series(0, 99) q")
                .update();
        db.sql("""
                insert into {schema}._private_jobs (task_id, payload, job_queue_id, run_at)
                select t.id, '0', case when n % 2 = 0 then q.id end, now() - interval '1 hour'
                from {schema}._private_tasks t, generate_series(1, ?) n
                join {schema}._private_job_queues q on q.queue_name = 'bad ' || (n % 100)
                """).param(count).update();
        refuseZeros();
    }

    private void refuseZeros() {
        db.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as $$
                begin
                  if old.payload::text = '0' then raise exception 'not this one'; end if;
                  return new;
                end $$;
                create trigger refuse before update on {schema}._private_jobs for each row execute function {schema}.refuse()
                """).update();
    }

    @Test
    void oneJobThatCannotBeClaimedKeepsNoClaimFromBringingMany() {
        start((call, proceed) -> proceed.proceed(), 10, (n, context) -> {});
        refuseZeros();
        db.sql("""
                insert into {schema}._private_jobs (task_id, payload)
                select t.id, to_json(n) from {schema}._private_tasks t, generate_series(0, 5000) n
                """).update();
        db.sql("notify \"jobs:insert\"").update();

        events.await(JobCompleted.class, 5_000);

        assertThat(db.jobs()).isEqualTo(1);
        // On a machine that stands still now and then some are smaller; one by one they would be 5,000.
        assertThat(events.all(JobsFetched.class)).hasSizeLessThan(2_500);
    }

    /** What it refuses is the commit. */
    @Test
    void aJobWhoseClaimADeferredConstraintRefusesIsPassedOver() {
        Job job = db.scheduler().addJob(WORK, 0);
        db.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as $$
                begin
                  if old.id = %s then raise exception 'not this one'; end if;
                  return null;
                end $$;
                create constraint trigger refuse after update on {schema}._private_jobs deferrable initially deferred
                  for each row execute function {schema}.refuse()
                """.formatted(job.id())).update();
        for (int i = 1; i < 6; i++) {
            db.scheduler().addJob(WORK, i);
        }
        start((call, proceed) -> proceed.proceed(), 3, (n, context) -> {});

        events.await(JobCompleted.class, 5);
    }

    @Test
    void aSinglePassPassesOverAJobThatCannotBeClaimed() throws Exception {
        Job job = db.scheduler().addJob(WORK, 0);
        db.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as $$
                begin
                  if old.id = %s then raise exception 'not this one'; end if;
                  return new;
                end $$;
                create trigger refuse before update on {schema}._private_jobs for each row execute function {schema}.refuse()
                """.formatted(job.id())).update();
        for (int i = 1; i < 6; i++) {
            db.scheduler().addJob(WORK, i);
        }
        Worker worker = db.worker().task(WORK, (n, context) -> {}).build();

        assertThat(worker.runOnce()).isEqualTo(5);
    }

    /** Whoever adds the first job of a task creates the task, in a transaction that may take long. */
    @Test
    void aTaskThatAnOpenTransactionIsCreatingKeepsNoOtherFromBeingServed() throws Exception {
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(db.schema().in("select {schema}.add_job('work', '1')"));
            db.start(db.worker()
                    .settings(WorkerSettings.builder()
                            .pollInterval(Duration.ofMillis(200))
                            .build())
                    .listener(events)
                    .task(WORK, (n, context) -> {})
                    .task(OTHER, (n, context) -> {}));
            db.scheduler().addJob(OTHER, 2);
            events.await(JobCompleted.class);
            other.commit();
        }
        events.await(JobCompleted.class, 2);
    }

    @Test
    void aJobIsCompletedThoughTheNextOfItsQueueCannotBeClaimed() throws Exception {
        CountDownLatch mayEnd = new CountDownLatch(1);
        List<Integer> ran = new CopyOnWriteArrayList<>();
        start((call, proceed) -> proceed.proceed(), 1, (n, context) -> {
            mayEnd.await();
            ran.add(n);
        });
        JobSpec queued = JobSpec.builder().queueName("q").build();
        db.scheduler().addJob(WORK, 1, queued);
        Job next = db.scheduler().addJob(WORK, 2, queued);
        db.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as $$
                begin
                  if old.id = %s then raise exception 'not this one'; end if;
                  return new;
                end $$;
                create trigger refuse before update on {schema}._private_jobs for each row execute function {schema}.refuse()
                """.formatted(next.id())).update();

        mayEnd.countDown();

        assertThat(events.await(JobCompleted.class).job().payload()).isEqualTo("1");
        assertThat(events.all(JobFailed.class)).isEmpty();
        db.sql("drop trigger refuse on {schema}._private_jobs").update();
        events.await(JobCompleted.class, 2);
        assertThat(ran).containsExactly(1, 2);
    }

    /** A table that is locked for a while refuses the outcome again and again; that says nothing about the job. */
    @Test
    void aSuccessIsNotForgottenWhileALockKeepsItFromBeingWritten() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        AtomicInteger runs = new AtomicInteger();
        AtomicInteger tries = new AtomicInteger();
        CountDownLatch often = new CountDownLatch(9);
        start(
                (call, proceed) -> {
                    if (call.is("executeQuery", "pgworker_complete")) {
                        try (Statement statement = call.connection().createStatement()) {
                            statement.execute("set lock_timeout = '50ms'");
                        }
                        tries.incrementAndGet();
                        often.countDown();
                    }
                    return proceed.proceed();
                },
                1,
                (n, context) -> {
                    runs.incrementAndGet();
                    started.countDown();
                    mayEnd.await();
                });
        db.scheduler().addJob(WORK, 1);
        started.await();
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(db.schema().in("lock table {schema}._private_jobs in share mode"));
            mayEnd.countDown();
            assertThat(often.await(120, TimeUnit.SECONDS)).isTrue();
            other.rollback();
        }

        events.await(JobCompleted.class);
        assertThat(runs).hasValue(1);
        assertThat(events.all(JobFailed.class)).isEmpty();
    }

    /** The statement never reached the database; when it is repeated, the job is another worker's. */
    @Test
    void aSuccessThatIsNotWrittenAfterAllIsToldAsLost() {
        AtomicBoolean lost = new AtomicBoolean();
        start(
                (call, proceed) -> {
                    if (call.is("executeQuery", "pgworker_complete") && lost.compareAndSet(false, true)) {
                        db.sql("update {schema}._private_jobs set locked_by = 'other'")
                                .update();
                        throw new SQLException("The connection broke on purpose", "08006");
                    }
                    return proceed.proceed();
                },
                1,
                (n, context) -> {});
        db.scheduler().addJob(WORK, 1);

        events.await(JobLost.class);
        assertThat(events.all(JobCompleted.class)).isEmpty();
    }

    private boolean isLocked(Connection connection, long id) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(db.schema()
                        .in(
                                "select count(*) from {schema}.jobs where locked_at is not null and last_error is null and id = "
                                        + id))) {
            row.next();
            return row.getInt(1) == 1;
        }
    }

    @Test
    void slowSiblingsAreReturnedNotLost() throws Exception {
        CountDownLatch mayEnd = new CountDownLatch(1);
        db.start(db.worker()
                .settings(WorkerSettings.builder()
                        .concurrency(1)
                        .localQueueTtl(Duration.ofMillis(200))
                        .shutdownGracePeriod(Duration.ofMillis(100))
                        .build())
                .listener(events)
                .task(WORK, (n, context) -> {
                    // The first of these may be the last one of its claim, which leaves no siblings to return.
                    if (n == 200 || n == 201) {
                        mayEnd.await(10, TimeUnit.SECONDS);
                    }
                }));
        List<JobRequest> requests = new ArrayList<>();
        JobSpec queued = JobSpec.builder().queueName("q").build();
        for (int i = 0; i < 300; i++) {
            requests.add(JobRequest.of(WORK, i, queued));
        }
        db.scheduler().addJobs(requests);

        assertThat(events.await(JobReturned.class).started()).isFalse();
        mayEnd.countDown();
        events.await(JobCompleted.class, 300);
        assertThat(events.all(JobFailed.class)).isEmpty();
    }

    private Worker start(Interceptor interceptor, int concurrency, TaskHandler<Integer> handler) {
        TaskOptions options = TaskOptions.DEFAULT.withRetryDelay(RetryDelay.fixed(retryDelay));
        return start(
                interceptor,
                concurrency,
                List.of(TaskRegistration.of(WORK, handler).with(options)));
    }

    private Worker start(Interceptor interceptor, int concurrency, List<TaskRegistration> tasks) {
        Worker worker = db.start(Worker.builder(new InterceptedDataSource(db.dataSource(), interceptor))
                .schema(db.schema())
                .jobScheduler(db.scheduler())
                .listenDataSource(db.dataSource())
                .settings(WorkerSettings.builder()
                        .concurrency(concurrency)
                        .pollInterval(Duration.ofMillis(200))
                        .shutdownGracePeriod(Duration.ofMillis(100))
                        .build())
                .reconcileInterval(Duration.ofMillis(300))
                .listener(events)
                .tasks(tasks));
        events.await(WorkerStarted.class);
        return worker;
    }
}
