package dev.pgworker;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.job.Task;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** What a worker tells about itself. */
@Tag("any-postgres")
class WorkerStatusTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    @Test
    void isNullUnlessTheWorkerRuns() {
        Worker worker = db.worker().task(WORK, (n, context) -> {}).build();
        assertThat(worker.status()).isNull();
        worker.start();
        assertThat(worker.status()).isNotNull();
        worker.stop();
        assertThat(worker.status()).isNull();
    }

    @Test
    void tellsHowTheWorkerDoes() throws InterruptedException {
        RecordingListener events = new RecordingListener();
        CountDownLatch running = new CountDownLatch(2);
        CountDownLatch release = new CountDownLatch(1);
        Worker worker = db.start(db.worker()
                .settings(WorkerSettings.builder().concurrency(3).build())
                .listener(events)
                .task(WORK, (n, context) -> {
                    running.countDown();
                    release.await();
                }));
        events.await(ListenerConnected.class);
        db.scheduler().addJob(WORK, 1);
        db.scheduler().addJob(WORK, 2);
        running.await();

        WorkerStatus status = worker.status();
        assertThat(status.workerId()).isEqualTo(worker.id());
        assertThat(status.running()).isEqualTo(2);
        assertThat(status.freeSlots()).isEqualTo(1);
        assertThat(status.waiting()).isZero();
        assertThat(status.listening()).isTrue();
        assertThat(status.deadThreads()).isEmpty();
        assertThat(status.outage()).isFalse();
        assertThat(status.sinceFetch()).isLessThan(Duration.ofMinutes(1));
        Awaitility.await()
                .untilAsserted(
                        () -> assertThat(worker.status().sinceHeartbeat()).isLessThan(Duration.ofMinutes(1)));
        release.countDown();
        Awaitility.await()
                .untilAsserted(() -> assertThat(worker.status().freeSlots()).isEqualTo(3));
    }

    @Test
    void isAnsweredWhileTheWorkerStops() throws InterruptedException {
        CountDownLatch running = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        Worker worker = db.start(db.worker().task(WORK, (n, context) -> {
            running.countDown();
            release.await();
        }));
        db.scheduler().addJob(WORK, 1);
        running.await();
        Thread stop = new Thread(worker::stop);
        stop.start();
        Awaitility.await().until(() -> stop.getState() != Thread.State.RUNNABLE && stop.getState() != Thread.State.NEW);

        assertThat(worker.isRunning()).isTrue();
        assertThat(worker.status().running()).isEqualTo(1);

        release.countDown();
        stop.join();
    }
}
