package dev.pgworker.history;

import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

import com.fasterxml.jackson.annotation.JsonRawValue;
import org.awaitility.Awaitility;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.slf4j.MDC;
import org.springframework.jdbc.support.JdbcTransactionManager;

import dev.pgworker.Worker;
import dev.pgworker.WorkerSettings;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.JobStarted;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.JobHandler;
import dev.pgworker.task.JobHandlerMethods;
import dev.pgworker.task.RetryDelay;
import dev.pgworker.task.TaskHandler;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.fail;
import static org.assertj.core.api.Assertions.tuple;

/** What becomes of jobs is kept, whoever ends them. */
class HistoryTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    private static final HistorySettings ON =
            HistorySettings.builder().enabled(true).build();

    private static final RetryDelay AT_ONCE = (job, error) -> Duration.ZERO;

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();

    private Worker.Builder worker() {
        return worker(ON);
    }

    private Worker.Builder worker(HistorySettings history) {
        return db.worker()
                .settings(WorkerSettings.builder().history(history).build())
                .listener(events);
    }

    private Worker start(TaskOptions options, TaskHandler<Integer> handler) {
        return db.start(worker().transactionManager(new JdbcTransactionManager(db.dataSource()))
                .tasks(List.of(TaskRegistration.of(WORK, handler).with(options))));
    }

    private JobHistory history() {
        return db.queries().history();
    }

    private List<HistoryEntry> of(Job job) {
        return history().of(job.id());
    }

    private HistoryEntry only(Job job) {
        List<HistoryEntry> entries = of(job);
        assertThat(entries).hasSize(1);
        return entries.get(0);
    }

    /** Switches the history on as a worker does, for tests without one. */
    private void switchOn() {
        db.sql("select {schema}.pgworker_keep_history(true, null, null, null)")
                .query(Boolean.class)
                .single();
    }

    @Test
    void withoutItNothingIsWritten() {
        db.start(worker(HistorySettings.DEFAULT)
                .tasks(List.of(
                        TaskRegistration.of(WORK, (payload, context) -> context.result(HistoryTest.unwritable())))));
        Job job = db.scheduler().addJob(WORK, 1);
        events.await(JobCompleted.class);

        assertThat(of(job)).isEmpty();
        assertThat(history().list(HistoryQuery.ALL)).isEqualTo(new HistoryPage(List.of(), null, false));
        assertThat(history().status())
                .isEqualTo(new HistoryStatus(
                        false,
                        Duration.ofDays(14),
                        1_000_000,
                        0,
                        history().status().bytes(),
                        null,
                        null));
    }

    private record Order(int number, String text) {}

    /** What Jackson refuses to write: it contains itself. */
    private static Map<String, Object> unwritable() {
        Map<String, Object> map = new HashMap<>();
        map.put("self", map);
        return map;
    }

    @Test
    void aSuccessIsKeptWithAllThatIsKnownOfIt() {
        Worker worker = start(TaskOptions.DEFAULT, (payload, context) -> {
            MDC.put("traceId", "0af7651916cd43dd8448eb211c80319c");
            Thread.sleep(20);
            context.result(new Order(payload, "ä\u0000\uD83D\uDE00"));
        });
        Instant before = Instant.now().minusSeconds(1);
        Job job = db.scheduler()
                .addJob(
                        WORK,
                        7,
                        JobSpec.builder()
                                .queueName("q")
                                .jobKey("k")
                                .priority(-3)
                                .flags("f", "g")
                                .maxAttempts(4)
                                .build());
        events.await(JobCompleted.class);

        HistoryEntry entry = only(job);

        assertThat(entry.endedAt()).isAfter(before);
        assertThat(entry.startedAt()).isNotNull().isBetween(before, entry.endedAt());
        assertThat(entry.took()).isBetween(Duration.ofMillis(20), Duration.ofSeconds(5));
        assertThat(entry)
                .isEqualTo(new HistoryEntry(
                        job.id(),
                        "work",
                        "q",
                        "k",
                        HistoryOutcome.SUCCEEDED,
                        entry.endedAt(),
                        entry.startedAt(),
                        entry.took(),
                        1,
                        4,
                        -3,
                        Set.of("f", "g"),
                        job.createdAt(),
                        job.runAt(),
                        worker.id(),
                        null,
                        "{\"number\":7,\"text\":\"ä\\u0000\uD83D\uDE00\"}",
                        "0af7651916cd43dd8448eb211c80319c",
                        "7"));
        assertThat(history().status().enabled()).isTrue();
        assertThat(history().status().oldest()).isEqualTo(entry.endedAt());
    }

    @Test
    void eachAttemptIsKeptWithItsError() {
        start(TaskOptions.DEFAULT.withRetryDelay(AT_ONCE), (payload, context) -> {
            throw new IllegalStateException("no " + context.attempt() + "x".repeat(10_000));
        });
        Job job =
                db.scheduler().addJob(WORK, 1, JobSpec.builder().maxAttempts(3).build());
        events.await(JobFailed.class, JobFailed::permanently);

        List<HistoryEntry> entries = of(job);

        assertThat(entries).extracting(HistoryEntry::attempt).containsExactly(3, 2, 1);
        assertThat(entries)
                .extracting(HistoryEntry::outcome)
                .containsExactly(HistoryOutcome.FAILED, HistoryOutcome.RETRIED, HistoryOutcome.RETRIED);
        assertThat(entries).allSatisfy(entry -> {
            assertThat(entry.error()).contains("no " + entry.attempt() + "xxx");
            assertThat(entry.took()).isNotNull();
            assertThat(entry.startedAt()).isNotNull();
        });
    }

    @Test
    void sameErrorsInARowAreSeveralEntries() {
        start(TaskOptions.DEFAULT.withRetryDelay(AT_ONCE), (payload, context) -> {
            throw new SameError();
        });
        Job job =
                db.scheduler().addJob(WORK, 1, JobSpec.builder().maxAttempts(3).build());
        events.await(JobFailed.class, JobFailed::permanently);

        assertThat(of(job))
                .extracting(HistoryEntry::outcome)
                .containsExactly(HistoryOutcome.FAILED, HistoryOutcome.RETRIED, HistoryOutcome.RETRIED);
    }

    private static final class SameError extends RuntimeException {
        private static final long serialVersionUID = 1L;

        SameError() {
            super("same", null, false, false);
        }
    }

    @Test
    void snoozesAndReturnsAreNoEntries() {
        AtomicInteger runs = new AtomicInteger();
        start(TaskOptions.DEFAULT, (payload, context) -> {
            if (runs.incrementAndGet() < 3) {
                throw JobControlException.snoozeFor(Duration.ofMillis(1));
            }
        });
        Job job = db.scheduler().addJob(WORK, 1);
        events.await(JobCompleted.class);

        assertThat(only(job).outcome()).isEqualTo(HistoryOutcome.SUCCEEDED);
    }

    @Test
    void directAndTransactionalRunsAreKeptLikeOthers() {
        for (TaskOptions options :
                List.of(TaskOptions.DEFAULT.withDirect(true), TaskOptions.DEFAULT.withTransactional(true))) {
            Worker worker = start(options, (payload, context) -> {
                if (payload == 2 && context.attempt() == 1) {
                    throw new IllegalStateException("once");
                }
                context.result(Map.of("n", payload));
            });
            Job good = db.scheduler().addJob(WORK, 1);
            Job bad = db.scheduler().addJob(WORK, 2);
            events.await(JobCompleted.class, event -> event.job().id() == good.id());
            events.await(JobFailed.class, event -> event.job().id() == bad.id());
            db.changes().runNow(List.of(bad.id()));
            events.await(JobCompleted.class, event -> event.job().id() == bad.id());

            HistoryEntry entry = only(good);
            assertThat(entry.outcome()).isEqualTo(HistoryOutcome.SUCCEEDED);
            assertThat(entry.result()).isEqualTo("{\"n\":1}");
            assertThat(entry.attempt()).isEqualTo(1);
            assertThat(entry.workerId()).isEqualTo(worker.id());
            assertThat(entry.startedAt()).isNotNull();
            assertThat(entry.took()).isNotNull();
            assertThat(of(bad))
                    .extracting(HistoryEntry::outcome, HistoryEntry::attempt)
                    .containsExactly(tuple(HistoryOutcome.SUCCEEDED, 2), tuple(HistoryOutcome.RETRIED, 1));
            worker.stop();
        }
    }

    @Test
    void whatPeopleAndTheirToolsEndIsKept() {
        switchOn();
        Job completed = db.scheduler().addJob(WORK, 1);
        Job failed = db.scheduler().addJob(WORK, 2);
        Job removed =
                db.scheduler().addJob(WORK, 3, JobSpec.builder().jobKey("k").build());
        Job deleted = db.scheduler().addJob(WORK, 4);

        db.changes().complete(List.of(completed.id()));
        db.changes().permanentlyFail(List.of(failed.id()), "no");
        db.changes().remove("k");
        db.sql("delete from {schema}._private_jobs where id = ?")
                .param(deleted.id())
                .update();
        db.sql("delete from {schema}._private_jobs where id = ?")
                .param(failed.id())
                .update();

        assertThat(List.of(only(completed), only(failed), only(removed), only(deleted)))
                .extracting(HistoryEntry::outcome)
                .containsExactly(
                        HistoryOutcome.SUCCEEDED,
                        HistoryOutcome.FAILED,
                        HistoryOutcome.REMOVED,
                        HistoryOutcome.REMOVED);
        assertThat(only(failed).error()).isEqualTo("no");
        assertThat(List.of(only(completed), only(failed), only(removed), only(deleted)))
                .allSatisfy(entry -> {
                    assertThat(entry.attempt()).isZero();
                    assertThat(entry.startedAt()).isNull();
                    assertThat(entry.took()).isNull();
                    assertThat(entry.workerId()).isNull();
                });
    }

    @Test
    void whatMakesAJobFailIsKeptWhateverItSaid() {
        switchOn();
        Job same = db.scheduler().addJob(WORK, 1);
        Job limited = db.scheduler().addJob(WORK, 2);
        db.sql("update {schema}._private_jobs set attempts = 2, last_error = 'timeout'")
                .update();

        db.changes().permanentlyFail(List.of(same.id()), "timeout");
        db.sql("select count(*) from {schema}.reschedule_jobs(array[?], max_attempts => 1)")
                .param(limited.id())
                .query(Long.class)
                .single();
        db.sql("delete from {schema}._private_jobs").update();

        assertThat(List.of(only(same), only(limited)))
                .extracting(HistoryEntry::outcome, HistoryEntry::error)
                .containsOnly(tuple(HistoryOutcome.FAILED, "timeout"));
    }

    @Test
    void functionsOfOthersAreNotMistakenForOurs() {
        switchOn();
        db.sql("create function {schema}.incomplete_jobs(text) returns void language plpgsql as"
                        + " $$ begin delete from {schema}._private_jobs; end $$")
                .update();
        db.sql("create function {schema}.remove_customer() returns void language plpgsql as $$ begin"
                        + " update {schema}._private_jobs set locked_at = now(), locked_by = 'peer', attempts = 1;"
                        + " delete from {schema}._private_jobs; end $$")
                .update();
        Job deleted = db.scheduler().addJob(WORK, 1);
        db.sql("do $$ begin perform {schema}.incomplete_jobs('complete_jobs('); end $$")
                .update();
        Job run = db.scheduler().addJob(WORK, 2);
        db.sql("do $$ begin perform {schema}.remove_customer(); end $$").update();
        Job completed = db.scheduler().addJob(WORK, 3);
        Job after = db.scheduler().addJob(WORK, 4);
        db.sql("do $$ begin perform {schema}.complete_jobs(array[" + completed.id() + "]);"
                        + " delete from {schema}._private_jobs; end $$")
                .update();

        assertThat(List.of(only(deleted), only(run), only(completed), only(after)))
                .extracting(HistoryEntry::outcome)
                .containsExactly(
                        HistoryOutcome.REMOVED,
                        HistoryOutcome.SUCCEEDED,
                        HistoryOutcome.SUCCEEDED,
                        HistoryOutcome.REMOVED);
    }

    @Test
    void whatNodeAndRustEndIsKept() {
        switchOn();
        Job done =
                db.scheduler().addJob(WORK, 1, JobSpec.builder().queueName("q").build());
        Job failing =
                db.scheduler().addJob(WORK, 2, JobSpec.builder().maxAttempts(2).build());

        claim(done);
        // as Node.js completes a job of a queue
        db.sql("""
                with j as (delete from {schema}._private_jobs where id = ?::bigint returning *)
                update {schema}._private_job_queues q set locked_by = null, locked_at = null
                from j where q.id = j.job_queue_id and q.locked_by = 'peer'
                """).param(done.id()).update();
        for (int i = 0; i < 2; i++) {
            claim(failing);
            db.sql("""
                    update {schema}._private_jobs set last_error = 'boom',
                      run_at = greatest(now(), run_at) + (exp(least(attempts, 10)) * interval '1 second'),
                      locked_by = null, locked_at = null
                    where id = ? and locked_by = 'peer'
                    """).param(failing.id()).update();
        }
        Job returned = db.scheduler().addJob(WORK, 3);
        claim(returned);
        db.sql(
                        "update {schema}._private_jobs set attempts = greatest(0, attempts - 1), locked_by = null, locked_at = null"
                                + " where id = ?")
                .param(returned.id())
                .update();

        assertThat(only(done).outcome()).isEqualTo(HistoryOutcome.SUCCEEDED);
        assertThat(only(done).workerId()).isEqualTo("peer");
        assertThat(only(done).took()).isNotNull();
        assertThat(of(failing))
                .extracting(HistoryEntry::outcome)
                .containsExactly(HistoryOutcome.FAILED, HistoryOutcome.RETRIED);
        assertThat(of(returned)).isEmpty();
    }

    private void claim(Job job) {
        db.sql(
                        "update {schema}._private_jobs set attempts = attempts + 1, locked_at = clock_timestamp(), locked_by = 'peer'"
                                + " where id = ?")
                .param(job.id())
                .update();
    }

    @Test
    void aDeadWorkersRunsAreKept() {
        switchOn();
        Job job =
                db.scheduler().addJob(WORK, 1, JobSpec.builder().maxAttempts(2).build());
        for (int i = 0; i < 3; i++) {
            claim(job);
            db.sql("select {schema}.recover_dead_worker_jobs(array['peer'])")
                    .query(Integer.class)
                    .single();
        }
        claim(job);
        db.operations().forceUnlockWorkers(List.of("peer"));
        claim(job);
        db.operations().forceUnlockWorkers(List.of("peer"));

        assertThat(of(job))
                .extracting(HistoryEntry::outcome)
                .containsExactly(
                        HistoryOutcome.FAILED,
                        HistoryOutcome.RECOVERED,
                        HistoryOutcome.RECOVERED,
                        HistoryOutcome.RECOVERED,
                        HistoryOutcome.RECOVERED);
        assertThat(of(job)).allSatisfy(entry -> assertThat(entry.workerId()).isEqualTo("peer"));
    }

    /** A handler whose work is done must not run again because of what it returns. */
    record Raw(@JsonRawValue String value) {}

    static final class Broken {

        public String getText() {
            return fail("broken");
        }
    }

    static final class Beans {

        private final Map<String, AtomicInteger> runs = new ConcurrentHashMap<>();

        private void ran(String task) {
            runs.computeIfAbsent(task, any -> new AtomicInteger()).incrementAndGet();
        }

        @JobHandler("order")
        Order order(int number) {
            ran("order");
            return new Order(number, "done");
        }

        @JobHandler("unwritable")
        Object unwritable(int number) {
            ran("unwritable");
            return HistoryTest.unwritable();
        }

        @JobHandler("surrogate")
        String surrogate(int number) {
            ran("surrogate");
            return "\uD800";
        }

        @JobHandler("long")
        String tooLong(int number) {
            ran("long");
            return "x".repeat(64 * 1024);
        }

        @JobHandler("longest")
        String longest(int number) {
            ran("longest");
            return "x".repeat(64 * 1024 - 2);
        }

        @JobHandler("nul")
        Raw nul(int number) {
            ran("nul");
            return new Raw("\"\u0000\"");
        }

        @JobHandler("two")
        Raw two(int number) {
            ran("two");
            return new Raw("1 2");
        }

        @JobHandler("deep")
        Raw deep(int number) {
            ran("deep");
            return new Raw("[".repeat(10_000) + "]".repeat(10_000));
        }

        @JobHandler("broken")
        Broken broken(int number) {
            ran("broken");
            return new Broken();
        }

        @JobHandler("endless")
        Iterable<String> endless(int number) {
            ran("endless");
            return () -> Stream.generate(() -> "more").iterator();
        }

        @JobHandler("nothing")
        @Nullable String nothing(int number) {
            ran("nothing");
            return null;
        }
    }

    private static final List<String> NOT_KEPT =
            List.of("unwritable", "surrogate", "long", "nothing", "nul", "two", "deep", "broken", "endless");

    @Test
    void whatAHandlerReturnsIsTheResult() {
        Beans beans = new Beans();
        db.start(worker().tasks(JobHandlerMethods.find(beans)));
        Map<String, Job> jobs = Stream.concat(Stream.of("order", "longest"), NOT_KEPT.stream())
                .collect(Collectors.toMap(task -> task, task -> db.scheduler().addJob(task, 1)));
        jobs.values()
                .forEach(job ->
                        events.await(JobCompleted.class, event -> event.job().id() == job.id()));

        assertThat(only(jobs.get("order")).result()).isEqualTo("{\"number\":1,\"text\":\"done\"}");
        assertThat(only(jobs.get("longest")).result()).hasSize(64 * 1024);
        for (String task : NOT_KEPT) {
            assertThat(only(jobs.get(task)).result()).as(task).isNull();
            assertThat(only(jobs.get(task)).outcome()).as(task).isEqualTo(HistoryOutcome.SUCCEEDED);
        }
        assertThat(beans.runs.values()).allSatisfy(runs -> assertThat(runs).hasValue(1));
    }

    static final class Future {

        private final Object value = new CompletableFuture<String>();

        @JobHandler("future")
        Object future() {
            return value;
        }
    }

    @Test
    void aFutureInTheGuiseOfAnObjectFailsTheAttempt() {
        db.start(worker().tasks(JobHandlerMethods.find(new Future())));
        Job job = db.scheduler()
                .addJob("future", null, JobSpec.builder().maxAttempts(1).build());
        events.await(JobFailed.class);

        assertThat(only(job).error()).contains("future()").contains("CompletableFuture");
    }

    @Test
    void everyRunIsKeptExactlyOnceHoweverManyWorkersThereAre() {
        Map<Integer, AtomicInteger> runs = new ConcurrentHashMap<>();
        TaskHandler<Integer> handler = (payload, context) -> {
            runs.computeIfAbsent(payload, any -> new AtomicInteger()).incrementAndGet();
            if (payload % 7 == 0 && context.attempt() == 1) {
                throw new SameError();
            }
        };
        for (boolean direct : List.of(false, true, false)) {
            start(TaskOptions.DEFAULT.withRetryDelay(AT_ONCE).withDirect(direct), handler);
        }
        int jobs = 4_000;
        for (int from = 0; from < jobs; from += 500) {
            db.scheduler()
                    .addJobs(WORK, IntStream.range(from, from + 500).boxed().toList());
        }
        Awaitility.await().until(() -> db.jobs() == 0);

        Map<Integer, Integer> kept = db
                .sql("select payload::text::int as n, count(*)::int as c from {schema}.pgworker_history group by 1")
                .query((row, number) -> Map.entry(row.getInt(1), row.getInt(2)))
                .list()
                .stream()
                .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue));
        assertThat(kept).hasSize(jobs);
        assertThat(runs)
                .allSatisfy((payload, times) -> assertThat(kept.get(payload)).isEqualTo(times.get()));
        assertThat(db.sql(
                                "select count(*) from (select from {schema}.pgworker_history group by job_id, attempt having count(*) > 1) d")
                        .query(Long.class)
                        .single())
                .isZero();
    }

    @Test
    void workersThatStartAtOnceLoseNothingOfWhatWasThere() {
        int jobs = 200;
        db.scheduler().addJobs(WORK, IntStream.range(0, jobs).boxed().toList());
        List<Worker> workers = IntStream.range(0, 4)
                .mapToObj(i -> worker().tasks(List.of(TaskRegistration.of(WORK, (payload, context) -> {})))
                        .build())
                .toList();
        workers.parallelStream().forEach(Worker::start);
        try {
            Awaitility.await().until(() -> db.jobs() == 0);
        } finally {
            workers.forEach(Worker::stop);
        }

        assertThat(db.sql("select count(distinct job_id) from {schema}.pgworker_history")
                        .query(Integer.class)
                        .single())
                .isEqualTo(jobs);
        assertThat(history().status().losses()).isNull();
    }

    @Test
    void itIsSwitchedBesideRunningWorkers() throws Exception {
        CountDownLatch go = new CountDownLatch(1);
        db.start(worker(HistorySettings.DEFAULT).tasks(List.of(TaskRegistration.of(WORK, (payload, context) -> {
            if (payload == 1) {
                go.await();
            }
        }))));
        Job begunBefore = db.scheduler().addJob(WORK, 1);
        events.await(JobStarted.class);
        switchOn();
        go.countDown();
        events.await(JobCompleted.class, event -> event.job().id() == begunBefore.id());
        db.sql("select {schema}.pgworker_keep_history(false, null, null, null)")
                .query(Boolean.class)
                .single();
        Job after = db.scheduler().addJob(WORK, 2);
        events.await(JobCompleted.class, event -> event.job().id() == after.id());

        assertThat(only(begunBefore).outcome()).isEqualTo(HistoryOutcome.SUCCEEDED);
        assertThat(of(after)).isEmpty();
        assertThat(history().status().enabled()).isFalse();
        assertThat(history().status().oldest()).isNotNull();
    }

    @Test
    void badCursorsAreRefused() {
        for (String after : List.of("", "x", "1", "1.2.3", "-9223372036854775808.1", "1.99999999999999999999")) {
            assertThatThrownBy(() ->
                            history().list(HistoryQuery.builder().after(after).build()))
                    .as(after)
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageStartingWith("after must be");
        }
    }
}
