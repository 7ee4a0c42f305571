package dev.pgworker.testing;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.event.WorkerEventListener;

/** Records events and lets a test wait for them. */
public final class RecordingListener implements WorkerEventListener {

    private static final Duration LIMIT = Duration.ofMinutes(2);

    private final List<WorkerEvent> events = new ArrayList<>();

    @Override
    public synchronized void onEvent(WorkerEvent event) {
        events.add(event);
        notifyAll();
    }

    /** Returns the events of one type so far. */
    public synchronized <E extends WorkerEvent> List<E> all(Class<E> type) {
        return events.stream().filter(type::isInstance).map(type::cast).toList();
    }

    /** Waits for an event of the type. */
    public <E extends WorkerEvent> E await(Class<E> type) {
        return await(type, e -> true);
    }

    /** Waits for an event of the type that matches. */
    public <E extends WorkerEvent> E await(Class<E> type, Predicate<? super E> matches) {
        return await(type, 1, matches).get(0);
    }

    /** Waits for that many events of the type. */
    public <E extends WorkerEvent> List<E> await(Class<E> type, int count) {
        return await(type, count, e -> true);
    }

    /** Waits for that many events of the type that match, as long as more of them come. */
    public synchronized <E extends WorkerEvent> List<E> await(Class<E> type, int count, Predicate<? super E> matches) {
        long deadline = System.nanoTime() + LIMIT.toNanos();
        int before = 0;
        while (true) {
            List<E> found = all(type).stream().filter(matches).toList();
            if (found.size() >= count) {
                return found;
            }
            if (found.size() > before) {
                before = found.size();
                deadline = System.nanoTime() + LIMIT.toNanos();
            }
            long left = deadline - System.nanoTime();
            if (left <= 0) {
                throw new AssertionError("There were not " + count + " " + type.getSimpleName() + " after "
                        + events.size() + " events, the last of them "
                        + events.subList(Math.max(0, events.size() - 5), events.size()));
            }
            try {
                java.util.concurrent.TimeUnit.NANOSECONDS.timedWait(this, left);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new AssertionError("Interrupted", e);
            }
        }
    }
}
