package dev.pgworker;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.event.WorkerEvent.EventsDropped;
import dev.pgworker.event.WorkerEvent.FetchEmpty;
import dev.pgworker.event.WorkerEvent.FetchFailed;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobEnded;
import dev.pgworker.event.WorkerEvent.JobErrored;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.JobInterrupted;
import dev.pgworker.event.WorkerEvent.JobReturned;
import dev.pgworker.event.WorkerEvent.JobSnoozed;
import dev.pgworker.event.WorkerEvent.JobStarted;
import dev.pgworker.event.WorkerEvent.JobSucceeded;
import dev.pgworker.event.WorkerEvent.JobsFetched;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.event.WorkerEvent.ListenerConnecting;
import dev.pgworker.event.WorkerEvent.OfJob;
import dev.pgworker.event.WorkerEvent.SchemaMigrated;
import dev.pgworker.event.WorkerEvent.WorkerStarted;
import dev.pgworker.event.WorkerEvent.WorkerStopped;
import dev.pgworker.event.WorkerEvent.WorkerStopping;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.task.JobControlException;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Which events a worker publishes, and what listeners may do to it. */
@Tag("any-postgres")
class EventsTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();

    @Test
    void aJobThatSucceedsFromStartToStop() {
        db.scheduler().addJob(WORK, 1);
        Worker worker = db.start(db.worker().listener(events).task(WORK, (n, context) -> {}));
        events.await(JobCompleted.class);
        events.await(FetchEmpty.class);
        worker.stop();

        // Delivered before stop() returns.
        assertThat(events.all(WorkerEvent.class).stream().map(WorkerEvent::getClass))
                .containsSubsequence(
                        WorkerStarted.class,
                        WorkerEvent.FetchStarted.class,
                        JobsFetched.class,
                        JobCompleted.class,
                        WorkerStopping.class,
                        WorkerStopped.class)
                .containsSubsequence(JobStarted.class, JobSucceeded.class, JobCompleted.class)
                .containsSubsequence(ListenerConnecting.class, ListenerConnected.class, WorkerStopping.class);
        assertThat(events.all(JobStarted.class))
                .singleElement()
                .satisfies(started -> assertThat(started.waited()).isBetween(Duration.ZERO, Duration.ofMinutes(1)));
    }

    @Test
    void aJobThatFails() {
        IllegalStateException error = new IllegalStateException("on purpose");
        db.scheduler().addJob(WORK, 1, JobSpec.builder().maxAttempts(1).build());
        db.start(db.worker().listener(events).task(WORK, (n, context) -> {
            throw error;
        }));

        JobFailed failed = events.await(JobFailed.class);

        assertThat(failed.permanently()).isTrue();
        assertThat(events.all(OfJob.class).stream().map(WorkerEvent::getClass))
                .containsExactly(JobStarted.class, JobErrored.class, JobFailed.class);
        assertThat(events.all(JobErrored.class).get(0).error()).isSameAs(error);
    }

    @Test
    void aJobThatIsPutOff() {
        db.scheduler().addJob(WORK, 1);
        db.start(db.worker().listener(events).task(WORK, (n, context) -> {
            throw JobControlException.snoozeFor(Duration.ofHours(1));
        }));

        events.await(JobSnoozed.class);

        assertThat(events.all(OfJob.class).stream().map(WorkerEvent::getClass))
                .containsExactly(JobStarted.class, JobEnded.class, JobSnoozed.class);
    }

    @Test
    void aJobThatIsInterruptedByTheStop() throws InterruptedException {
        CountDownLatch running = new CountDownLatch(1);
        db.scheduler().addJob(WORK, 1);
        Worker worker = db.start(db.worker()
                .settings(WorkerSettings.builder()
                        .shutdownGracePeriod(Duration.ZERO)
                        .build())
                .listener(events)
                .task(WORK, (n, context) -> {
                    running.countDown();
                    Thread.sleep(60_000);
                }));
        running.await();

        worker.stop();

        assertThat(events.all(OfJob.class).stream().map(WorkerEvent::getClass))
                .containsExactlyInAnyOrder(JobStarted.class, JobInterrupted.class, JobEnded.class, JobReturned.class);
        assertThat(events.all(JobInterrupted.class).get(0).timedOut()).isFalse();
    }

    @Test
    void aClaimThatFails() {
        db.start(db.worker().listener(events).task(WORK, (n, context) -> {}));
        events.await(FetchEmpty.class);
        db.sql("alter table {schema}._private_jobs rename to hidden").update();
        db.sql("notify \"jobs:insert\"").update();

        events.await(FetchFailed.class);

        db.sql("alter table {schema}.hidden rename to _private_jobs").update();
        db.scheduler().addJob(WORK, 1);
        events.await(JobCompleted.class);
    }

    @Test
    @Tag("thorough")
    void aMigrationThatIsAnnounced() {
        db.start(db.worker().listener(events).task(WORK, (n, context) -> {}));
        events.await(ListenerConnected.class);

        db.sql("insert into {schema}.migrations (id, breaking) values (23, false)")
                .update();
        db.sql("notify \"worker:migrate\", '{\"migrationNumber\": 23, \"breaking\": false}'")
                .update();

        SchemaMigrated migrated = events.await(SchemaMigrated.class);
        assertThat(migrated.migration()).isEqualTo(23);
        assertThat(migrated.breaking()).isFalse();
    }

    @Test
    void aMigrationThatAStrangerAnnounces() {
        Worker worker = db.start(db.worker().listener(events).task(WORK, (n, context) -> {}));
        events.await(ListenerConnected.class);

        for (String announcement : List.of("{\"migrationNumber\":99,\"breaking\":true}", "not JSON", "")) {
            db.sql("select pg_notify('worker:migrate', ?)")
                    .param(announcement)
                    .query()
                    .listOfRows();
        }

        db.scheduler().addJob(WORK, 1);
        events.await(JobCompleted.class);
        assertThat(worker.status()).isNotNull();
        assertThat(events.all(SchemaMigrated.class)).isEmpty();
    }

    @Test
    @Tag("thorough")
    void aMigrationThatTheLedgerKnowsToBeBreaking() {
        db.start(db.worker().listener(events).task(WORK, (n, context) -> {}));
        events.await(ListenerConnected.class);

        db.sql("insert into {schema}.migrations (id, breaking) values (99, true)")
                .update();
        db.sql("notify \"worker:migrate\"").update();

        assertThat(events.await(SchemaMigrated.class).breaking()).isTrue();
        events.await(WorkerStopped.class);
    }

    /** The listener sleeps until all jobs are done, and throws: if jobs waited for it, none would ever end. */
    @Test
    void aListenerThatSleepsAndThrowsHarmsNothing() throws InterruptedException {
        int jobs = 10_000;
        CountDownLatch allDone = new CountDownLatch(jobs);
        AtomicInteger published = new AtomicInteger();
        AtomicInteger received = new AtomicInteger();
        AtomicInteger dropped = new AtomicInteger();
        WorkerEventListener sleepy = event -> {
            if (event instanceof EventsDropped some) {
                dropped.addAndGet((int) some.count());
            } else {
                received.incrementAndGet();
            }
            await(allDone);
            throw new IllegalStateException("on purpose");
        };
        db.scheduler()
                .addJobs(IntStream.range(0, jobs)
                        .mapToObj(n -> JobRequest.of(WORK, n))
                        .toList());
        Worker worker = db.start(db.worker()
                .listener(sleepy)
                .directListener(event -> {
                    published.incrementAndGet();
                    if (event instanceof JobCompleted) {
                        allDone.countDown();
                    }
                })
                .task(WORK, (n, context) -> {}));

        allDone.await();
        worker.stop();

        assertThat(db.jobs()).isZero();
        assertThat(dropped.get()).isPositive();
        assertThat(received.get() + dropped.get()).isEqualTo(published.get());
    }

    @Test
    void aListenerThatNeverReturnsDoesNotKeepTheWorkerFromStopping() throws InterruptedException {
        CountDownLatch never = new CountDownLatch(1);
        CountDownLatch interrupted = new CountDownLatch(1);
        Worker worker = db.start(db.worker()
                .listener(event -> {
                    try {
                        never.await();
                    } catch (InterruptedException e) {
                        interrupted.countDown();
                    }
                })
                .directListener(events)
                .task(WORK, (n, context) -> {}));
        events.await(WorkerStarted.class);

        worker.stop();

        interrupted.await();
        assertThat(worker.isRunning()).isFalse();
    }

    @Test
    void aListenerMayStopTheWorker() {
        Worker[] worker = new Worker[1];
        CountDownLatch stopped = new CountDownLatch(1);
        db.scheduler().addJob(WORK, 1);
        worker[0] = db.worker()
                .listener(event -> {
                    if (event instanceof JobCompleted) {
                        worker[0].stop();
                        stopped.countDown();
                    }
                })
                .task(WORK, (n, context) -> {})
                .build();
        worker[0].start();

        await(stopped);
        assertThat(worker[0].isRunning()).isFalse();
    }

    @Test
    void listenersAreCalledOnOneThreadAndDirectOnesWhereItHappens() {
        List<String> threads = new java.util.concurrent.CopyOnWriteArrayList<>();
        List<String> direct = new java.util.concurrent.CopyOnWriteArrayList<>();
        db.scheduler().addJob(WORK, 1);
        db.start(db.worker()
                .listener(event -> threads.add(Thread.currentThread().getName()))
                .listener(events)
                .directListener(event -> {
                    if (event instanceof OfJob) {
                        direct.add(Thread.currentThread().getName());
                    }
                })
                .task(WORK, (n, context) -> {}));

        events.await(JobCompleted.class);

        assertThat(threads).containsOnly("worker-events");
        assertThat(direct).containsExactly("worker-job-1", "worker-job-1", "worker-complete");
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
