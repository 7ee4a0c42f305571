package dev.pgworker.autoconfigure.testing;

import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.event.WorkerEventListener;

/** Records events and lets a test wait for them. */
public final class RecordedEvents implements WorkerEventListener {

    private final BlockingQueue<WorkerEvent> events = new LinkedBlockingQueue<>();

    @Override
    public void onEvent(WorkerEvent event) {
        events.add(event);
    }

    /** Returns the events of a type that have been published and not awaited. */
    public <E extends WorkerEvent> List<E> all(Class<E> type) {
        return events.stream().filter(type::isInstance).map(type::cast).toList();
    }

    /** Waits for the next event of a type; what comes before it is forgotten. */
    public <E extends WorkerEvent> E await(Class<E> type) throws InterruptedException {
        while (true) {
            WorkerEvent event = events.poll(120, TimeUnit.SECONDS);
            if (event == null) {
                throw new AssertionError("Waited in vain for " + type.getSimpleName());
            }
            if (type.isInstance(event)) {
                return type.cast(event);
            }
        }
    }
}
