package dev.pgworker;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobReturned;
import dev.pgworker.event.WorkerEvent.JobStarted;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.event.WorkerEvent.PauseBegan;
import dev.pgworker.event.WorkerEvent.PauseEnded;
import dev.pgworker.event.WorkerEvent.WorkerStarted;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Pause;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.job.Task;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.LogCapture;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** What workers do when something is paused and resumed. */
@Tag("any-postgres")
class PauseTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);
    private static final Task<Integer> OTHER = Task.of("other", Integer.class);
    private static final PauseTarget PAUSED = PauseTarget.task("work");

    @RegisterExtension
    final TestSchema db = new TestSchema(60);

    private final RecordingListener events = new RecordingListener();

    private Worker.Builder worker(boolean listen, int concurrency) {
        return db.worker()
                .settings(WorkerSettings.builder()
                        .listen(listen)
                        .concurrency(concurrency)
                        .build())
                .listener(events)
                .task(WORK, (n, context) -> {})
                .task(OTHER, (n, context) -> {});
    }

    private Worker.Builder direct() {
        TaskOptions direct = TaskOptions.DEFAULT.withDirect(true);
        return db.worker()
                .listener(events)
                .tasks(List.of(
                        TaskRegistration.of(WORK, (n, context) -> LockSupport.parkNanos(200_000))
                                .with(direct),
                        TaskRegistration.of(OTHER, (n, context) -> {}).with(direct)));
    }

    private void add(Task<Integer> task, int count) {
        db.scheduler()
                .addJobs(IntStream.range(0, count)
                        .mapToObj(n -> JobRequest.of(task, n))
                        .toList());
    }

    private long started(Task<?> task) {
        return events.all(JobStarted.class).stream()
                .filter(event -> event.job().taskIdentifier().equals(task.identifier()))
                .count();
    }

    private void awaitCompleted(Task<?> task, int count) {
        events.await(
                JobCompleted.class, count, event -> event.job().taskIdentifier().equals(task.identifier()));
    }

    /** Returns how long it took until all workers knew. */
    private Duration pause(PauseTarget target, int workers) {
        int before = events.all(PauseBegan.class).size();
        long begin = System.nanoTime();
        assertThat(db.operations().pause(target, null)).isTrue();
        events.await(PauseBegan.class, before + workers);
        return Duration.ofNanos(System.nanoTime() - begin);
    }

    @Test
    void aTaskIsPausedInAllWorkersAndResumed() {
        for (int i = 0; i < 4; i++) {
            db.start(worker(i < 2, 4));
        }
        events.await(WorkerStarted.class, 4);
        events.await(ListenerConnected.class, 2);
        add(WORK, 100);
        awaitCompleted(WORK, 100);

        Duration took = pause(PAUSED, 4);
        add(WORK, 200);
        add(OTHER, 200);
        awaitCompleted(OTHER, 200);

        System.out.println("Paused everywhere after " + took.toMillis() + " ms");
        assertThat(started(WORK)).isEqualTo(100);
        assertThat(db.jobs()).isEqualTo(200);

        assertThat(db.operations().resume(PAUSED)).isTrue();
        awaitCompleted(WORK, 300);
        assertThat(events.await(PauseEnded.class, 1).get(0).pause().target()).isEqualTo(PAUSED);
    }

    /** A job that begins later than the worker has said that it knows of the pause would be one too many. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void noJobStartsOnceAWorkerKnows(boolean direct) {
        db.start(direct ? direct() : worker(true, 10));
        events.await(ListenerConnected.class);
        add(WORK, 6_000);
        awaitCompleted(WORK, 100);

        pause(PAUSED, 1);
        // A direct batch that is under way ends first, and so does what has been taken by a handler.
        db.scheduler().addJob(OTHER, 1);
        awaitCompleted(OTHER, 1);
        db.scheduler().addJob(OTHER, 1);
        awaitCompleted(OTHER, 2);
        long then = started(WORK);
        add(OTHER, 1_000);
        awaitCompleted(OTHER, 1_002);

        assertThat(started(WORK)).isEqualTo(then).isLessThan(6_000);
        assertThat(db.sql("select count(*) from {schema}._private_jobs where attempts > 0")
                        .query(Integer.class)
                        .single())
                .as("jobs that were claimed and given back")
                .isZero();

        db.operations().resume(PAUSED);
        awaitCompleted(WORK, 6_000);
    }

    @Test
    void whatIsClaimedAndHasNotStartedIsGivenBackAndWhatRunsGoesOn() throws Exception {
        CountDownLatch mayEnd = new CountDownLatch(1);
        db.start(db.worker()
                .settings(WorkerSettings.builder()
                        .concurrency(1)
                        .localQueueTtl(Duration.ofMinutes(1))
                        .build())
                .listener(events)
                .task(WORK, (n, context) -> {
                    if (n < 0) {
                        mayEnd.await();
                    }
                })
                .task(OTHER, (n, context) -> {}));
        events.await(ListenerConnected.class);
        // Fast jobs first, so that the next ones are claimed ahead of the handler.
        add(WORK, 400);
        awaitCompleted(WORK, 400);
        Job running = db.scheduler().addJob(WORK, -1);
        events.await(JobStarted.class, event -> event.job().id() == running.id());
        add(WORK, 20);
        Awaitility.await("claimed ahead").until(() -> locked() > 1);

        try (LogCapture log = new LogCapture(Class.forName("dev.pgworker.internal.engine.complete.OutcomeReporter"))) {
            pause(PAUSED, 1);
            Awaitility.await().until(() -> locked() == 1);
            events.await(JobReturned.class);
            assertThat(log.messages()).as("a line for each of up to 1,000 jobs").isEmpty();
        }
        assertThat(db.sql("select count(*) from {schema}._private_jobs where attempts <> 0 and locked_at is null")
                        .query(Integer.class)
                        .single())
                .isZero();

        mayEnd.countDown();
        awaitCompleted(WORK, 401);
        db.scheduler().addJob(OTHER, 1);
        awaitCompleted(OTHER, 1);
        assertThat(started(WORK)).isEqualTo(401);
        db.operations().resume(PAUSED);
        awaitCompleted(WORK, 421);
        assertThat(events.all(JobStarted.class)).allMatch(event -> event.job().attempts() == 1);
    }

    private int locked() {
        return db.sql("select count(*) from {schema}._private_jobs where locked_at is not null")
                .query(Integer.class)
                .single();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void everythingIsPausedAndARestartDoesNotEndThat(boolean direct) throws InterruptedException {
        Worker first = db.start(direct ? direct() : worker(true, 4));
        events.await(ListenerConnected.class);
        pause(PauseTarget.everything(), 1);
        add(WORK, 10);
        add(OTHER, 10);
        db.scheduler().addJob(WORK, 1, JobSpec.builder().queueName("q").build());
        first.stop();

        RecordingListener second = new RecordingListener();
        db.start((direct ? direct() : worker(true, 4)).listener(second));
        second.await(PauseBegan.class);
        second.await(WorkerStarted.class);
        assertThat(db.worker()
                        .task(WORK, (n, context) -> {})
                        .task(OTHER, (n, context) -> {})
                        .build()
                        .runOnce())
                .isZero();
        assertThat(second.all(JobStarted.class)).isEmpty();
        assertThat(db.jobs()).isEqualTo(21);

        db.operations().resume(PauseTarget.everything());
        second.await(JobCompleted.class, 21);
    }

    @Test
    void aPassLeavesOutWhatIsPaused() throws InterruptedException {
        db.operations().pause(PAUSED, null);
        add(WORK, 5);
        add(OTHER, 7);

        assertThat(worker(true, 4).build().runOnce()).isEqualTo(7);

        db.operations().resume(PAUSED);
        assertThat(worker(true, 4).build().runOnce()).isEqualTo(5);
    }

    @Test
    void tellsWhoHasPausedWhatAndWhy() {
        assertThat(db.queries().pauses()).isEmpty();
        assertThat(db.operations().actingAs("ann").pause(PAUSED, "the partner is down"))
                .isTrue();
        assertThat(db.operations().actingAs("bob").pause(PAUSED, "another reason"))
                .as("it is left as it is")
                .isFalse();
        db.start(worker(true, 1));
        Pause pause = events.await(PauseBegan.class).pause();

        assertThat(db.queries().pauses()).containsExactly(pause);
        assertThat(pause.text())
                .isEqualTo("task \"work\" paused by ann since " + pause.since() + ": the partner is down");
        assertThat(db.operations().resume(PauseTarget.queue("work"))).isFalse();
        assertThat(db.operations().resume(PAUSED)).isTrue();
        assertThat(db.operations().resume(PAUSED)).isFalse();
        assertThat(db.queries().pauses()).isEmpty();
    }

    @Test
    void jobsOfAQueueWaitAndTheOneThatRunsGoesOn() throws Exception {
        CountDownLatch mayEnd = new CountDownLatch(1);
        db.start(db.worker()
                .listener(events)
                .task(WORK, (n, context) -> {
                    if (n < 0) {
                        mayEnd.await();
                    }
                })
                .task(OTHER, (n, context) -> {}));
        events.await(ListenerConnected.class);
        JobSpec spec = JobSpec.builder().queueName("q").build();
        Job running = db.scheduler().addJob(WORK, -1, spec);
        events.await(JobStarted.class);
        for (int n = 0; n < 5; n++) {
            db.scheduler().addJob(WORK, n, spec);
        }

        pause(PauseTarget.queue("q"), 1);
        mayEnd.countDown();
        assertThat(events.await(JobCompleted.class).job().id()).isEqualTo(running.id());
        db.scheduler().addJob(OTHER, 1);
        awaitCompleted(OTHER, 1);
        assertThat(started(WORK)).isEqualTo(1);

        db.operations().resume(PauseTarget.queue("q"));
        awaitCompleted(WORK, 6);
        assertThat(events.all(JobCompleted.class).stream()
                        .filter(event -> event.job().queueName() != null)
                        .map(event -> event.job().id()))
                .isSorted();
    }

    @Test
    void aQueueThatIsResumedWhileItsJobRunsStaysSerial() throws Exception {
        CountDownLatch mayEnd = new CountDownLatch(1);
        for (int i = 0; i < 2; i++) {
            db.start(db.worker()
                    .listener(events)
                    .task(WORK, (n, context) -> {
                        if (n < 0) {
                            mayEnd.await();
                        }
                    })
                    .task(OTHER, (n, context) -> {}));
        }
        events.await(ListenerConnected.class, 2);
        JobSpec spec = JobSpec.builder().queueName("q").build();
        db.scheduler().addJob(WORK, -1, spec);
        events.await(JobStarted.class);
        db.scheduler().addJob(WORK, 1, spec);

        pause(PauseTarget.queue("q"), 2);
        db.operations().resume(PauseTarget.queue("q"));
        events.await(PauseEnded.class, 2);
        for (int n = 0; n < 50; n++) {
            db.scheduler().addJob(OTHER, 1);
            awaitCompleted(OTHER, n + 1);
        }
        assertThat(started(WORK)).isEqualTo(1);

        mayEnd.countDown();
        awaitCompleted(WORK, 2);
        assertThat(db.queries().pauses()).isEmpty();
    }
}
