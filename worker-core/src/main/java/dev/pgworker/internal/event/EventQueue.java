package dev.pgworker.internal.event;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

import org.slf4j.Logger;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.failure.WorkerLog;

/**
 * Carries events to listeners on {@code worker-events}, a thread of its own. What waits is bounded in number and size:
 * an event that finds no room is thrown away, so that those who publish never wait.
 */
final class EventQueue {

    private static final Logger log = WorkerLog.of(EventQueue.class);

    /** How many events may wait. */
    static final int ROOM = 20_000;

    /** So many characters of payload take the room of one event more. */
    private static final int CHARACTERS = 512;

    /** However large a payload is, some events with such fit in. */
    private static final int MOST = ROOM / 4;

    /** Throwing away is logged once in this time. */
    private static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(10);

    private final String workerId;
    private final List<ListenerCall> listeners;
    private final BlockingQueue<WorkerEvent> events = new LinkedBlockingQueue<>();
    private final AtomicLong taken = new AtomicLong();
    private final AtomicLong dropped = new AtomicLong();
    private final Thread thread = new Thread(this::deliver, "worker-events");

    private volatile boolean closing;

    /** Owned by the thread. */
    private long tellAgainAt = System.nanoTime();

    EventQueue(String workerId, List<ListenerCall> listeners) {
        this.workerId = workerId;
        this.listeners = listeners;
        thread.setDaemon(true);
    }

    void start() {
        thread.start();
    }

    /** Returns true if the thread has ended although the queue was not closed. */
    boolean isDead() {
        return !closing && thread.getState() == Thread.State.TERMINATED;
    }

    void add(WorkerEvent event) {
        long weight = weight(event);
        if (taken.addAndGet(weight) > ROOM) {
            taken.addAndGet(-weight);
            dropped.incrementAndGet();
        } else {
            events.add(event);
        }
    }

    private static long weight(WorkerEvent event) {
        return event instanceof WorkerEvent.OfJob ofJob
                ? Math.min(1 + ofJob.job().payload().length() / CHARACTERS, MOST)
                : 1;
    }

    /** Delivers what waits, at most for the given time, and ends the thread. */
    void close(Duration limit) {
        closing = true;
        events.add(new WorkerEvent.EventsDropped(workerId, 0)); // wakes the thread
        if (thread == Thread.currentThread()) {
            return;
        }
        try {
            thread.join(limit.toMillis());
            if (thread.isAlive()) {
                log.warn("Listeners are too slow: about {} events are not delivered", events.size());
                events.clear();
                thread.interrupt();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void deliver() {
        while (!(closing && events.isEmpty())) {
            try {
                WorkerEvent event = events.take();
                if (System.nanoTime() - tellAgainAt >= 0) {
                    tellOfDropped();
                }
                if (!(event instanceof WorkerEvent.EventsDropped)) {
                    taken.addAndGet(-weight(event));
                    listeners.forEach(listener -> listener.deliver(event));
                }
            } catch (InterruptedException e) {
                // A listener left its thread interrupted, or close() has cleared the queue.
            } catch (Throwable e) {
                // Memory for example that cannot be had. Listeners' own failures do not come here.
                dropped.incrementAndGet();
            }
        }
        tellOfDropped();
    }

    private void tellOfDropped() {
        long count = dropped.getAndSet(0);
        if (count > 0) {
            tellAgainAt = System.nanoTime() + PAUSE_NANOS;
            log.warn("Listeners are too slow: {} events have been dropped", count);
            WorkerEvent event = new WorkerEvent.EventsDropped(workerId, count);
            listeners.forEach(listener -> listener.deliver(event));
        }
    }
}
