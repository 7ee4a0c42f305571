package dev.pgworker.internal.event;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.job.Job;
import dev.pgworker.testing.TestJob;

import static org.assertj.core.api.Assertions.assertThat;

/** What waits for slow listeners is bounded. */
@Tag("any-postgres")
class EventQueueTest {

    private final AtomicLong received = new AtomicLong();
    private final AtomicLong dropped = new AtomicLong();

    private long deliveredOf(int count, String payload) {
        EventQueue queue = new EventQueue("w", List.of(new ListenerCall(event -> {
            if (event instanceof WorkerEvent.EventsDropped some) {
                dropped.addAndGet(some.count());
            } else {
                received.incrementAndGet();
            }
        })));
        Job job = job(payload);
        for (int i = 0; i < count; i++) {
            queue.add(new WorkerEvent.JobCompleted("w", job));
        }
        queue.start();
        queue.close(Duration.ofMinutes(2));
        assertThat(received.get() + dropped.get()).isEqualTo(count);
        return received.get();
    }

    @Test
    void inNumber() {
        assertThat(deliveredOf(EventQueue.ROOM + 7, "{}")).isEqualTo(EventQueue.ROOM);
        assertThat(dropped).hasValue(7);
    }

    @Test
    void inSize() {
        assertThat(deliveredOf(1_000, "\"" + "x".repeat(51_198) + "\"")).isEqualTo(EventQueue.ROOM / 101);
    }

    @Test
    void butEvenTheLargestPayloadFitsIn() {
        assertThat(deliveredOf(4, "\"" + "x".repeat(10_000_000) + "\"")).isEqualTo(4);
    }

    @Test
    void roomIsGivenBack() throws InterruptedException {
        CountDownLatch first = new CountDownLatch(EventQueue.ROOM);
        CountDownLatch second = new CountDownLatch(2 * EventQueue.ROOM);
        EventQueue queue = new EventQueue("w", List.of(new ListenerCall(event -> {
            first.countDown();
            second.countDown();
        })));
        WorkerEvent event = new WorkerEvent.JobCompleted("w", job("{}"));
        queue.start();
        for (int i = 0; i < EventQueue.ROOM; i++) {
            queue.add(event);
        }
        first.await();
        for (int i = 0; i < EventQueue.ROOM; i++) {
            queue.add(event);
        }
        second.await();
        queue.close(Duration.ofMinutes(2));
    }

    private static Job job(String payload) {
        return TestJob.withId(1).payload(payload).build();
    }
}
