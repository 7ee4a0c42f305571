package dev.pgworker;

import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;

import org.awaitility.Awaitility;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.JobLost;
import dev.pgworker.event.WorkerEvent.JobReturned;
import dev.pgworker.event.WorkerEvent.JobSnoozed;
import dev.pgworker.event.WorkerEvent.JobStarted;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.TaskHandler;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Tasks whose jobs are locked, run and deleted in one transaction. */
@Tag("any-postgres")
class DirectTaskTest {

    private static final Task<Integer> DIRECT = Task.of("direct", Integer.class);

    private static final Duration LIMIT = Duration.ofMinutes(2);

    @RegisterExtension
    final TestSchema db = new TestSchema(30);

    private final RecordingListener events = new RecordingListener();

    private Worker.Builder worker(TaskHandler<Integer> handler) {
        return worker(handler, TaskOptions.DEFAULT);
    }

    private Worker.Builder worker(TaskHandler<Integer> handler, TaskOptions options) {
        return db.worker()
                .tasks(List.of(TaskRegistration.of(DIRECT, handler).with(options.withDirect(true))))
                .listener(events);
    }

    private Worker start(Worker.Builder builder) {
        Worker worker = db.start(builder);
        events.await(ListenerConnected.class);
        return worker;
    }

    private Job add(int payload) {
        return db.scheduler().addJob(DIRECT, payload);
    }

    private Map<String, @Nullable Object> row(Job job) {
        return db.sql("select * from {schema}._private_jobs where id = ?")
                .param(job.id())
                .query()
                .singleRow();
    }

    /** Returns whether nobody holds the row of the job. */
    private boolean isFree(Job job) {
        return !db.sql("select id from {schema}._private_jobs where id = ? for update skip locked")
                .param(job.id())
                .query(Long.class)
                .list()
                .isEmpty();
    }

    private static void await(CountDownLatch latch) throws InterruptedException {
        assertThat(latch.await(LIMIT.toSeconds(), TimeUnit.SECONDS)).isTrue();
    }

    /** A handler that takes over 100 ms, on a busy machine for instance, goes on without its batch; such runs do not count. */
    @Test
    void aJobIsLockedWhileItRunsWithoutEverHavingBeenWritten() {
        List<String> seen = new CopyOnWriteArrayList<>();
        start(worker((payload, context) -> {
            long begun = System.nanoTime();
            Job job = context.job();
            Map<String, @Nullable Object> row = row(job);
            String found = row.get("locked_by") + " " + row.get("attempts") + " " + isFree(job) + " "
                    + context.attempt() + " " + context.isOwned() + " "
                    + Thread.currentThread().getName().startsWith("worker-direct-");
            if (System.nanoTime() - begun < Duration.ofMillis(90).toNanos()) {
                seen.add(found);
            }
        }));

        for (int i = 0; i < 50 && seen.size() < 3; i++) {
            Job job = add(i);
            events.await(JobCompleted.class, event -> event.job().id() == job.id());
        }

        assertThat(seen).isNotEmpty().containsOnly("null 0 false 1 true true");
        assertThat(db.jobs()).isZero();
    }

    @Test
    void everyJobRunsOnceHoweverManyWorkersAndAddersThereAre() throws Exception {
        Map<Integer, AtomicInteger> runs = new ConcurrentHashMap<>();
        for (int i = 0; i < 3; i++) {
            db.start(worker((payload, context) ->
                    runs.computeIfAbsent(payload, any -> new AtomicInteger()).incrementAndGet()));
        }
        int adders = 4;
        int each = 3_000;
        List<Thread> threads = new ArrayList<>();
        for (int adder = 0; adder < adders; adder++) {
            int first = adder * each;
            Thread thread = new Thread(() -> IntStream.range(0, each / 100)
                    .forEach(group -> db.scheduler()
                            .addJobs(IntStream.range(0, 100)
                                    .mapToObj(i -> JobRequest.of(DIRECT, first + group * 100 + i))
                                    .toList())));
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }

        Awaitility.await().until(() -> db.jobs() == 0);
        events.await(JobCompleted.class, adders * each);
        assertThat(runs).hasSize(adders * each);
        assertThat(runs.values()).allMatch(count -> count.get() == 1);
        assertThat(events.all(JobLost.class)).isEmpty();
    }

    @Test
    void aFailureIsWrittenAsThatOfAnyOtherJobAndHurtsNobodyElse() {
        start(worker((payload, context) -> {
            if (payload == 5) {
                throw new IllegalStateException("five");
            } else if (payload == 6) {
                throw JobControlException.snoozeFor(Duration.ofHours(1));
            } else if (payload == 7) {
                throw JobControlException.failPermanently("seven");
            }
        }));

        List<Job> jobs = db.scheduler()
                .addJobs(IntStream.range(0, 20)
                        .mapToObj(i -> JobRequest.of(DIRECT, i))
                        .toList());

        events.await(JobCompleted.class, 17);
        events.await(JobFailed.class, 2);
        events.await(JobSnoozed.class);
        assertThat(db.jobs()).isEqualTo(3);
        Map<String, @Nullable Object> failed = row(jobs.get(5));
        assertThat(failed)
                .containsEntry("attempts", 1)
                .containsEntry("locked_by", null)
                .containsEntry("is_available", true);
        assertThat((String) failed.get("last_error")).contains("five");
        assertThat(db.sql("select run_at > now() from {schema}._private_jobs where id = ?")
                        .param(jobs.get(5).id())
                        .query(Boolean.class)
                        .single())
                .isTrue();
        assertThat(row(jobs.get(6))).containsEntry("attempts", 0);
        assertThat(row(jobs.get(7))).containsEntry("is_available", false).containsEntry("max_attempts", 1);
    }

    @Test
    void aRetryRunsWithTheNextAttemptAndALaterToken() {
        List<String> runs = new CopyOnWriteArrayList<>();
        List<Long> tokens = new CopyOnWriteArrayList<>();
        start(worker(
                (payload, context) -> {
                    runs.add(context.attempt() + " " + context.isLastAttempt());
                    String token = context.fencingToken();
                    tokens.add(Long.parseLong(token.substring(token.lastIndexOf('-') + 1)));
                    throw new IllegalStateException("no");
                },
                TaskOptions.DEFAULT.withRetryDelay((job, error) -> Duration.ZERO)));

        Job job = db.scheduler()
                .addJob(DIRECT, 1, JobSpec.builder().maxAttempts(3).build());

        events.await(JobFailed.class, 3);
        assertThat(runs).containsExactly("1 false", "2 false", "3 true");
        assertThat(tokens).isSorted().doesNotHaveDuplicates();
        assertThat(row(job)).containsEntry("attempts", 3).containsEntry("is_available", false);
    }

    @Test
    void jobsWithForbiddenFlagsAreLeftAlone() {
        start(worker((payload, context) -> {}).forbiddenFlags(() -> List.of("no")));

        Job forbidden =
                db.scheduler().addJob(DIRECT, 1, JobSpec.builder().flags("no").build());
        add(2);

        events.await(JobCompleted.class);
        assertThat(row(forbidden)).containsEntry("attempts", 0);
    }

    /** Where a handler runs is told by its thread: what takes over 100 ms is claimed there while it runs. */
    @Test
    void aHandlerThatAddsAJobUnderTheKeyOfItsOwnDoesNotWaitForItself() {
        List<Integer> inBatches = new CopyOnWriteArrayList<>();
        List<@Nullable Object> holdersOfOthers = new CopyOnWriteArrayList<>();
        JobSpec spec = JobSpec.builder().jobKey("k").build();
        start(worker((payload, context) -> {
            if (Thread.currentThread().getName().startsWith("worker-direct-")) {
                inBatches.add(payload);
            } else {
                holdersOfOthers.add(row(context.job()).get("locked_by"));
            }
            if (payload == 1) {
                context.addJob(DIRECT, 2, spec);
            }
        }));

        db.scheduler()
                .addJobs(List.of(JobRequest.of(DIRECT, 0), JobRequest.of(DIRECT, 1, spec), JobRequest.of(DIRECT, 3)));

        events.await(JobCompleted.class, 3);
        Awaitility.await().until(() -> db.jobs() == 0);
        assertThat(inBatches).containsExactlyInAnyOrder(0, 3);
        assertThat(holdersOfOthers).hasSize(2).doesNotContainNull();
    }

    @Test
    void manyJobsWithKeysKeepNoOtherFromItsBatch() {
        Map<Integer, String> threads = new ConcurrentHashMap<>();
        List<JobRequest> requests = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            requests.add(
                    JobRequest.of(DIRECT, i, JobSpec.builder().jobKey("k" + i).build()));
            requests.add(JobRequest.of(DIRECT, 1_000 + i));
        }
        db.scheduler().addJobs(requests);

        start(worker((payload, context) ->
                threads.put(payload, Thread.currentThread().getName())));

        events.await(JobCompleted.class, 600);
        assertThat(threads)
                .hasSize(600)
                .allSatisfy((payload, thread) ->
                        assertThat(thread.startsWith("worker-direct-")).isEqualTo(payload >= 1_000));
    }

    @Test
    void jobsOfAQueueRunOneAfterTheOtherInTheirOrder() {
        List<Integer> order = Collections.synchronizedList(new ArrayList<>());
        AtomicInteger atOnce = new AtomicInteger();
        AtomicBoolean overlap = new AtomicBoolean();
        List<JobRequest> requests = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            requests.add(
                    JobRequest.of(DIRECT, i, JobSpec.builder().queueName("q").build()));
            requests.add(JobRequest.of(DIRECT, -1));
        }
        db.scheduler().addJobs(requests);
        for (int i = 0; i < 2; i++) {
            db.start(worker((payload, context) -> {
                if (payload >= 0) {
                    overlap.compareAndSet(false, atOnce.incrementAndGet() > 1);
                    order.add(payload);
                    atOnce.decrementAndGet();
                }
            }));
        }

        events.await(JobCompleted.class, 400);
        assertThat(order)
                .containsExactlyElementsOf(IntStream.range(0, 200).boxed().toList());
        assertThat(overlap).isFalse();
    }

    @Test
    void aQueueThatHoldsOtherJobsTooKeepsItsOrder() {
        Task<Integer> ordinary = Task.of("ordinary", Integer.class);
        List<Integer> order = Collections.synchronizedList(new ArrayList<>());
        JobSpec spec = JobSpec.builder().queueName("q").build();
        db.scheduler()
                .addJobs(IntStream.range(0, 100)
                        .mapToObj(i -> JobRequest.of(i % 3 == 0 ? ordinary : DIRECT, i, spec))
                        .toList());
        start(worker((payload, context) -> order.add(payload))
                .task(ordinary, (payload, context) -> order.add(payload)));

        events.await(JobCompleted.class, 100);
        assertThat(order)
                .containsExactlyElementsOf(IntStream.range(0, 100).boxed().toList());
    }

    @Test
    void aLargePayloadArrivesWhole() {
        Task<String> text = Task.of("text", String.class);
        List<Integer> lengths = new CopyOnWriteArrayList<>();
        start(db.worker()
                .tasks(List.of(TaskRegistration.of(text, (payload, context) -> lengths.add(payload.length()))
                        .with(TaskOptions.DEFAULT.withDirect(true))))
                .listener(events));

        String large = IntStream.range(0, 20_000)
                .mapToObj(i -> Integer.toString(i * 7919, 36))
                .reduce(new StringBuilder(), StringBuilder::append, StringBuilder::append)
                .toString();
        db.scheduler().addJob(text, large);

        events.await(JobCompleted.class);
        assertThat(lengths).containsExactly(large.length());
    }

    @Test
    void aBatchWhoseSessionBreaksRunsAgainAndThenCountsItsAttempts() {
        AtomicLong broken = new AtomicLong();
        List<String> runs = new CopyOnWriteArrayList<>();
        start(worker((payload, context) -> {
            Job job = context.job();
            String run = context.isOwned() + " " + row(job).get("locked_by");
            if (broken.get() == job.id()) {
                runs.add(run);
            } else if (broken.get() == 0 && breakBatchOf(job)) {
                broken.set(job.id());
                runs.add(run);
                Awaitility.await().until(() -> !context.isOwned());
            }
        }));

        // A handler that takes over 100 ms, on a busy machine for instance, has no batch any more that could break.
        for (int i = 0; i < 50 && broken.get() == 0; i++) {
            Job job = add(i);
            events.await(JobCompleted.class, event -> event.job().id() == job.id());
        }

        // Its listeners may hear of the run before later than of this one.
        assertThat(events.await(JobLost.class, 1)).hasSize(1);
        assertThat(runs).hasSize(2).startsWith("true null").last().asString().startsWith("true pgworker-");
    }

    /** Returns whether there was one. */
    private boolean breakBatchOf(Job job) {
        return !db.sql("""
                        select pg_terminate_backend(backend_pid) from {schema}.pgworker_batches
                        where job_ids = array[?::bigint]""").param(job.id()).query().listOfRows().isEmpty();
    }

    @Test
    void aJobThatCannotBeDeletedKeepsNoOtherFromBeingDone() {
        db.sql("""
                        create function {schema}.keep() returns trigger language plpgsql as
                        $$begin if old.payload::text = '13' then raise exception 'kept'; end if; return old; end$$""").update();
        db.sql(
                        "create trigger keep before delete on {schema}._private_jobs for each row execute function {schema}.keep()")
                .update();
        Map<Integer, AtomicInteger> runs = new ConcurrentHashMap<>();
        start(worker((payload, context) ->
                runs.computeIfAbsent(payload, any -> new AtomicInteger()).incrementAndGet()));

        List<Job> jobs = db.scheduler()
                .addJobs(IntStream.range(0, 30)
                        .mapToObj(i -> JobRequest.of(DIRECT, i))
                        .toList());

        events.await(JobCompleted.class, 29);
        Awaitility.await().until(() -> row(jobs.get(13)).get("last_error") != null);
        assertThat(row(jobs.get(13))).containsEntry("locked_by", null);
        assertThat(runs.values()).allMatch(count -> count.get() == 1);
        add(100);
        events.await(JobCompleted.class, 30);
    }

    @Test
    void aStopWaitsForTheHandlerAtHandAndLeavesTheOthersAsTheyWere() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch end = new CountDownLatch(1);
        List<Integer> ran = new CopyOnWriteArrayList<>();
        db.scheduler()
                .addJobs(IntStream.range(0, 10)
                        .mapToObj(i -> JobRequest.of(DIRECT, i))
                        .toList());
        Worker worker = db.start(worker((payload, context) -> {
            ran.add(payload);
            started.countDown();
            await(end);
        }));
        await(started);

        Thread stop = new Thread(worker::stop);
        stop.start();
        // What claims jobs has ended before handlers are waited for.
        Awaitility.await()
                .until(() -> Thread.getAllStackTraces().keySet().stream()
                        .noneMatch(thread -> thread.getName().equals("worker-fetch")));
        end.countDown();
        stop.join();

        assertThat(ran).containsExactly(0);
        assertThat(events.all(JobCompleted.class)).hasSize(1);
        assertThat(db.sql("select count(*) from {schema}._private_jobs where attempts = 0 and locked_at is null")
                        .query(Integer.class)
                        .single())
                .isEqualTo(9);
        assertThat(db.sql("select count(*) from {schema}.pgworker_batches")
                        .query(Integer.class)
                        .single())
                .isZero();
    }

    @Test
    void aHandlerThatIsInterruptedByTheStopIsGivenBack() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        Worker worker = start(worker((payload, context) -> {
                    started.countDown();
                    new CountDownLatch(1).await();
                })
                .settings(WorkerSettings.builder()
                        .shutdownGracePeriod(Duration.ofMillis(50))
                        .build()));
        Job job = add(1);
        await(started);

        worker.stop();

        events.await(JobReturned.class);
        assertThat(row(job)).containsEntry("attempts", 0).containsEntry("locked_by", null);
    }

    @Test
    void aStopFreesTheBatchOfAHandlerThatIgnoresIt() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch end = new CountDownLatch(1);
        Worker worker = start(worker((payload, context) -> {
                    started.countDown();
                    while (end.getCount() > 0) {
                        try {
                            end.await();
                        } catch (InterruptedException e) {
                            // ignored
                        }
                    }
                })
                .settings(WorkerSettings.builder()
                        .shutdownGracePeriod(Duration.ofMillis(50))
                        .build()));
        Job job = add(1);
        await(started);

        worker.stop();

        Awaitility.await().until(() -> isFree(job) && row(job).get("locked_by") == null);
        end.countDown();
    }

    @Test
    void aHandlerThatTakesTooLongIsInterruptedAndItsJobFails() {
        start(worker(
                (payload, context) -> {
                    if (payload == 1) {
                        new CountDownLatch(1).await();
                    }
                },
                TaskOptions.DEFAULT.withTimeout(Duration.ofMillis(100))));

        db.scheduler().addJobs(List.of(JobRequest.of(DIRECT, 1), JobRequest.of(DIRECT, 2)));

        events.await(JobFailed.class);
        events.await(JobCompleted.class);
        assertThat(db.jobs()).isEqualTo(1);
    }

    @Test
    void whatDoesNotFitIntoABatchIsFreeAgainUnwritten() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch end = new CountDownLatch(1);
        AtomicInteger number = new AtomicInteger();
        List<Integer> ran = new CopyOnWriteArrayList<>();
        db.scheduler()
                .addJobs(IntStream.range(0, 12)
                        .mapToObj(i -> JobRequest.of(DIRECT, i))
                        .toList());
        start(worker((payload, context) -> {
            ran.add(payload);
            if (number.incrementAndGet() == 1) {
                started.countDown();
                await(end);
                TimeUnit.NANOSECONDS.sleep(Duration.ofMillis(51).toNanos());
            }
        }));
        await(started);
        end.countDown();

        events.await(JobCompleted.class, 12);
        assertThat(ran).hasSize(12).doesNotHaveDuplicates();
    }

    @Test
    void aHandlerThatTakesLongGoesOnWithoutItsBatchAsAnyOther() throws Exception {
        CountDownLatch end = new CountDownLatch(1);
        List<String> seen = new CopyOnWriteArrayList<>();
        List<Job> jobs = db.scheduler()
                .addJobs(IntStream.range(0, 100)
                        .mapToObj(i -> JobRequest.of(DIRECT, i))
                        .toList());
        start(worker((payload, context) -> {
            if (payload == 3 || payload == 4) {
                await(end);
                seen.add(payload + " " + context.isOwned() + " "
                        + row(context.job()).get("attempts"));
                if (payload == 4) {
                    throw new IllegalStateException("four");
                }
            }
        }));

        events.await(JobCompleted.class, 98);
        assertThat(row(jobs.get(3)).get("locked_by")).asString().startsWith("pgworker-");
        assertThat(isFree(jobs.get(3))).isTrue();
        end.countDown();

        events.await(JobCompleted.class, 99);
        events.await(JobFailed.class);
        assertThat(seen).containsExactlyInAnyOrder("3 true 1", "4 true 1");
        assertThat(row(jobs.get(4)))
                .containsEntry("attempts", 1)
                .containsEntry("locked_by", null)
                .extractingByKey("last_error")
                .asString()
                .contains("four");
        assertThat(db.jobs()).isEqualTo(1);
        add(1_000);
        events.await(JobCompleted.class, 100);
        assertThat(events.all(JobLost.class)).isEmpty();
    }

    @Test
    @Tag("thorough")
    void aHandlerThatTakesLongAndIgnoresItsInterruptionIsNotWaitedFor() throws Exception {
        CountDownLatch end = new CountDownLatch(1);
        start(worker(
                (payload, context) -> {
                    while (payload == 1 && end.getCount() > 0) {
                        try {
                            end.await();
                        } catch (InterruptedException e) {
                            // what this test is about
                        }
                    }
                },
                TaskOptions.DEFAULT.withTimeout(Duration.ofMillis(300))));

        db.scheduler().addJobs(List.of(JobRequest.of(DIRECT, 1), JobRequest.of(DIRECT, 2)));

        events.await(JobFailed.class);
        events.await(JobCompleted.class);
        end.countDown();
        add(3);
        events.await(JobCompleted.class, 2);
        assertThat(db.jobs()).isEqualTo(1);
    }

    @Test
    void whatFollowsAHandlerThatTakesLongWaitsForNoOtherChain() throws Exception {
        CountDownLatch end = new CountDownLatch(1);
        CountDownLatch held = new CountDownLatch(1);
        db.scheduler()
                .addJobs(IntStream.range(0, 20_000)
                        .mapToObj(i -> JobRequest.of(DIRECT, i))
                        .toList());
        List<Integer> order = Collections.synchronizedList(new ArrayList<>());
        start(worker((payload, context) -> {
            order.add(payload);
            if (Thread.currentThread().getName().equals("worker-direct-2") && held.getCount() > 0) {
                held.countDown();
                await(end);
            }
            TimeUnit.MILLISECONDS.sleep(1);
        }));
        await(held);
        List<Job> urgent = db.scheduler()
                .addJobs(IntStream.range(30_000, 30_004)
                        .mapToObj(i -> JobRequest.of(
                                DIRECT, i, JobSpec.builder().priority(-10).build()))
                        .toList());

        for (Job job : urgent) {
            events.await(JobCompleted.class, event -> event.job().id() == job.id());
        }
        assertThat(db.jobs()).as("less urgent ones left").isPositive();
        end.countDown();
    }

    @Test
    void jobsOfABatchThatBrokeRunInTheOrdinaryWayWhateverElseThereIs() throws Exception {
        int jobs = 3_000;
        AtomicBoolean broken = new AtomicBoolean();
        Map<Integer, List<String>> runs = new ConcurrentHashMap<>();
        db.scheduler()
                .addJobs(IntStream.range(0, jobs)
                        .mapToObj(i -> JobRequest.of(DIRECT, i))
                        .toList());
        start(worker((payload, context) -> {
            runs.computeIfAbsent(payload, any -> new CopyOnWriteArrayList<>())
                    .add(Thread.currentThread().getName());
            // Not every job runs in a batch; the first that does breaks its own.
            if (payload > 100 && !broken.getAndSet(true)) {
                broken.set(!db.sql("""
                                select pg_terminate_backend(backend_pid) from {schema}.pgworker_batches
                                where ?::bigint = any(job_ids)""")
                        .param(context.job().id())
                        .query()
                        .listOfRows()
                        .isEmpty());
            }
        }));

        Awaitility.await().until(() -> db.jobs() == 0);

        assertThat(runs).hasSize(jobs);
        assertThat(runs.values()).allMatch(names -> names.size() <= 2);
        assertThat(runs.values())
                .filteredOn(names -> names.size() == 2)
                .isNotEmpty()
                .allSatisfy(names -> assertThat(names.get(1)).startsWith("worker-job-"));
    }

    @Test
    void whoeverLocksTheTableIsWaitedForBeforeAnythingRuns() throws Exception {
        start(worker((payload, context) -> {}));
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(db.schema().in("lock table {schema}._private_jobs in share mode"));
            Thread adder = new Thread(() -> add(1));
            adder.start();
            Awaitility.await()
                    .until(() -> db.sql("select count(*) from pg_stat_activity where wait_event = 'relation'")
                                    .query(Integer.class)
                                    .single()
                            > 0);
            assertThat(events.all(JobStarted.class)).isEmpty();
            connection.rollback();
            adder.join();
        }
        events.await(JobCompleted.class);
        assertThat(events.all(JobLost.class)).isEmpty();
    }

    @Test
    void jobsThatHaveBeenDueForeverRun() {
        db.scheduler()
                .addJobs(IntStream.range(0, 300)
                        .mapToObj(i -> JobRequest.of(DIRECT, i))
                        .toList());
        db.sql("update {schema}._private_jobs set run_at = '-infinity'").update();

        start(worker((payload, context) -> {}));

        events.await(JobCompleted.class, 300);
        assertThat(events.all(JobStarted.class)).hasSize(300);
        assertThat(db.jobs()).isZero();
    }

    @Test
    void aRoleThatEndsIdleTransactionsEndsNoBatch() throws Exception {
        String role = db.sql("select current_user").query(String.class).single();
        Worker.Builder builder = worker((payload, context) -> TimeUnit.MILLISECONDS.sleep(400));
        try {
            db.sql("alter role \"" + role + "\" set idle_in_transaction_session_timeout = '100ms'")
                    .update();
            db.sql("alter role \"" + role + "\" set statement_timeout = '20s'").update();
            db.dataSource().getHikariPoolMXBean().softEvictConnections();
            start(builder);
            add(1);
            events.await(JobCompleted.class);
        } finally {
            db.sql("alter role \"" + role + "\" reset idle_in_transaction_session_timeout")
                    .update();
            db.sql("alter role \"" + role + "\" reset statement_timeout").update();
        }
        assertThat(events.all(JobLost.class)).isEmpty();
    }

    @Test
    void aJobThatIsDueLaterRunsThen() {
        start(worker((payload, context) -> {})
                .settings(WorkerSettings.builder()
                        .pollInterval(Duration.ofHours(1))
                        .build()));

        db.scheduler()
                .addJob(
                        DIRECT,
                        1,
                        JobSpec.builder().runIn(Duration.ofMillis(300)).build());

        events.await(JobCompleted.class);
    }

    @Test
    void aSinglePassRunsThemToo() throws Exception {
        add(1);

        assertThat(worker((payload, context) -> {}).build().runOnce()).isEqualTo(1);
        assertThat(db.jobs()).isZero();
    }

    @Test
    void oneThatIsTransactionalAsWellIsRefused() {
        assertThatThrownBy(() -> TaskOptions.DEFAULT.withTransactional(true).withDirect(true))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("direct and transactional");
    }

    @Test
    void theWorkerTellsThatItRunsAJobAndWhichThreadsItHas() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch end = new CountDownLatch(1);
        List<JobContext> contexts = new CopyOnWriteArrayList<>();
        Worker worker = start(worker((payload, context) -> {
            contexts.add(context);
            started.countDown();
            await(end);
        }));
        add(1);
        await(started);

        assertThat(Objects.requireNonNull(worker.status()).running()).isEqualTo(1);
        assertThat(contexts.get(0).isOwned()).isTrue();
        end.countDown();
        events.await(JobCompleted.class);
        assertThat(contexts.get(0).isOwned()).isFalse();
    }
}
