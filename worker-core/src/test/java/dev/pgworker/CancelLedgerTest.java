package dev.pgworker;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.jdbc.support.JdbcTransactionManager;

import dev.pgworker.event.WorkerEvent.JobCancelled;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.event.WorkerEvent.WorkersRecovered;
import dev.pgworker.job.Cancellation;
import dev.pgworker.job.Cancellation.State;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.task.CancelSettings;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testing.WorkerProcess;

import static org.assertj.core.api.Assertions.assertThat;

/** Every answer to a cancellation is true, whatever the workers do at that moment. */
@Tag("thorough")
@Tag("any-postgres")
class CancelLedgerTest {

    private static final int JOBS = 3_000;

    private static final Duration LIMIT = Duration.ofMinutes(2);

    private static final List<Task<Integer>> TASKS = List.of(
            Task.of("plain", Integer.class), Task.of("transactional", Integer.class), Task.of("direct", Integer.class));

    @RegisterExtension
    final TestSchema db = new TestSchema(50);

    private final RecordingListener events = new RecordingListener();

    /** How often handlers of each job have started, and how often they have succeeded. */
    private final Map<Long, Integer> starts = new ConcurrentHashMap<>();

    private final Map<Long, Integer> successes = new ConcurrentHashMap<>();

    @Test
    void everyAnswerIsTrueWhileJobsOfAllKindsRunFailAndSucceed() throws Exception {
        for (int worker = 0; worker < 3; worker++) {
            startWorker();
        }
        Random random = new Random(20);
        List<JobRequest> requests = new ArrayList<>();
        for (int i = 0; i < JOBS; i++) {
            JobSpec.Builder spec = JobSpec.builder().maxAttempts(3);
            if (random.nextInt(4) == 0) {
                spec.queueName("q" + random.nextInt(5));
            }
            requests.add(JobRequest.of(TASKS.get(i % 3), random.nextInt(1_000), spec.build()));
        }
        List<Long> ids = new ArrayList<>();
        Map<Long, Cancellation> answers = new ConcurrentHashMap<>();
        ExecutorService cancellers = Executors.newFixedThreadPool(4);
        List<Future<?>> all = new ArrayList<>();
        for (int from = 0; from < JOBS; from += 250) {
            List<Long> added = new ArrayList<>(db.scheduler().addJobs(requests.subList(from, from + 250)).stream()
                    .map(Job::id)
                    .toList());
            ids.addAll(added);
            Collections.shuffle(added, random);
            all.add(cancellers.submit(cancelling(added, answers, new Random(from))));
        }
        for (Future<?> one : all) {
            one.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        }
        cancellers.shutdown();
        db.changes().awaitCancellations(ids, LIMIT);
        Awaitility.await().until(() -> db.jobs() == 0);

        Map<Long, State> ends = new ConcurrentHashMap<>();
        db.queries().cancellations(ids).forEach(end -> ends.put(end.jobId(), end.state()));
        Map<State, Integer> seen = new ConcurrentHashMap<>();
        answers.forEach((id, answer) -> {
            State end = answer.state() == State.REQUESTED ? ends.get(id) : answer.state();
            seen.merge(end, 1, Integer::sum);
            check(id, answer.state(), end);
        });
        System.out.println("Cancellations of " + JOBS + " jobs ended as " + seen);
        assertThat(seen).containsKeys(State.REMOVED, State.GONE, State.CANCELLED, State.COMPLETED);
        ids.stream()
                .filter(id -> !answers.containsKey(id))
                .forEach(id ->
                        assertThat(successes).as("jobs that nobody cancelled").containsEntry(id, 1));
        Set<Long> cancelled = ConcurrentHashMap.newKeySet();
        Set<Long> completed = ConcurrentHashMap.newKeySet();
        Awaitility.await().untilAsserted(() -> {
            events.all(JobCancelled.class).forEach(e -> cancelled.add(e.job().id()));
            events.all(JobCompleted.class).forEach(e -> completed.add(e.job().id()));
            assertThat(completed).isEqualTo(successes.keySet());
            assertThat(cancelled)
                    .isEqualTo(ends.keySet().stream()
                            .filter(id -> ends.get(id) == State.CANCELLED)
                            .collect(java.util.stream.Collectors.toSet()));
        });
    }

    private void check(long id, State answer, State end) {
        String job = "job " + id + ", which was told to be " + answer + " and " + end;
        switch (end) {
            case REMOVED, CANCELLED -> assertThat(successes).as(job).doesNotContainKey(id);
            case COMPLETED, GONE -> assertThat(successes).as(job).containsEntry(id, 1);
            case REQUESTED, MARKED -> throw new AssertionError(job);
        }
        if (answer == State.REQUESTED && end == State.CANCELLED) {
            assertThat(starts.getOrDefault(id, 0)).as(job).isLessThanOrEqualTo(3);
        }
    }

    private Callable<Void> cancelling(List<Long> ids, Map<Long, Cancellation> answers, Random random) {
        JobChanges changes = db.changes();
        return () -> {
            List<Long> half = ids.subList(0, ids.size() / 2);
            for (int from = 0; from < half.size(); ) {
                int to = Math.min(half.size(), from + 1 + random.nextInt(8));
                changes.cancel(half.subList(from, to)).forEach(answer -> answers.put(answer.jobId(), answer));
                from = to;
                Thread.sleep(random.nextInt(10));
            }
            return null;
        };
    }

    private void startWorker() {
        List<TaskRegistration> handlers = List.of(
                TaskRegistration.of(TASKS.get(0), this::handle).with(retrying()),
                TaskRegistration.of(TASKS.get(1), this::handle).with(retrying().withTransactional(true)),
                TaskRegistration.of(TASKS.get(2), this::handle).with(retrying().withDirect(true)));
        int connected = events.all(ListenerConnected.class).size();
        db.start(db.worker()
                .tasks(handlers)
                .transactionManager(new JdbcTransactionManager(db.dataSource()))
                .settings(WorkerSettings.builder()
                        .concurrency(4)
                        .cancel(new CancelSettings(Duration.ZERO, Duration.ofSeconds(30)))
                        .build())
                .listener(events));
        events.await(ListenerConnected.class, connected + 1);
    }

    private static TaskOptions retrying() {
        return TaskOptions.DEFAULT.withRetryDelay((job, error) -> Duration.ofMillis(5));
    }

    /** Some fail at first, some take a while, and some do not mind to be interrupted. */
    private void handle(int n, JobContext context) throws InterruptedException {
        long id = context.job().id();
        starts.merge(id, 1, Integer::sum);
        if (n % 10 == 0 && context.attempt() == 1) {
            throw new IllegalStateException("on purpose");
        }
        if (n % 3 > 0) {
            try {
                Thread.sleep(n % 40);
            } catch (InterruptedException e) {
                if (n % 7 > 0) {
                    throw e;
                }
            }
        }
        successes.merge(id, 1, Integer::sum);
    }

    @Test
    @DisabledOnOs(value = OS.WINDOWS, disabledReason = "needs the signals of kill")
    void aJobThatIsCancelledWhileItsWorkerHangsAndIsKilledEndsAsCancelled() throws Exception {
        WorkerProcess.createLedger(db);
        try (WorkerProcess process = WorkerProcess.start(db.schema(), "cancelled")) {
            Job job = db.scheduler()
                    .addJob(
                            WorkerProcess.SLEEP,
                            60_000,
                            JobSpec.builder().jobKey("k").queueName("q").build());
            Job behind = db.scheduler()
                    .addJob(
                            WorkerProcess.SLEEP,
                            0,
                            JobSpec.builder().queueName("q").build());
            awaitLedger("start", 1);
            db.start(WorkerProcess.worker(db.dataSource(), db.schema()).listener(events));
            events.await(ListenerConnected.class);
            process.pause();

            assertThat(db.changes().cancel("k").orElseThrow().state()).isEqualTo(State.REQUESTED);
            process.kill();

            assertThat(db.changes().awaitCancellations(List.of(job.id()), LIMIT))
                    .allSatisfy(end -> assertThat(end.state()).isEqualTo(State.CANCELLED));
            events.await(WorkersRecovered.class);
            assertThat(events.await(JobCancelled.class).job().id()).isEqualTo(job.id());
            events.await(JobCompleted.class, e -> e.job().id() == behind.id());
            assertThat(db.jobs()).isZero();
            assertThat(db.sql("select count(*) from {schema}.ledger where job = ? and what = 'start'")
                            .param(job.id())
                            .query(Long.class)
                            .single())
                    .isEqualTo(1);
        }
    }

    @Test
    @DisabledOnOs(value = OS.WINDOWS, disabledReason = "needs the signals of kill")
    void aHandlerInAnotherProcessIsInterrupted() throws Exception {
        WorkerProcess.createLedger(db);
        try (WorkerProcess process = WorkerProcess.start(db.schema(), "told")) {
            Job job = db.scheduler().addJob(WorkerProcess.SLEEP, 60_000);
            awaitLedger("start", 1);
            long begin = System.nanoTime();

            db.changes().cancel(List.of(job.id()));

            awaitLedger("interrupted", 1);
            assertThat(process.isAlive()).isTrue();
            System.out.println("Interrupted after " + (System.nanoTime() - begin) / 1_000_000 + " ms");
            assertThat(db.changes().awaitCancellations(List.of(job.id()), LIMIT))
                    .allSatisfy(end -> assertThat(end.state()).isEqualTo(State.CANCELLED));
        }
    }

    private void awaitLedger(String what, int count) {
        Awaitility.await()
                .pollInterval(Duration.ofMillis(5))
                .until(() -> db.sql("select count(*) from {schema}.ledger where what = ?")
                                .param(what)
                                .query(Integer.class)
                                .single()
                        >= count);
    }
}
