package dev.pgworker.internal.event;

import java.time.Duration;
import java.util.List;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.internal.failure.WorkerLog;

/** Hands a worker's events to the listeners, in order, and keeps their failures and slowness away from the worker. */
public final class WorkerEvents {

    private static final Logger log = WorkerLog.of(WorkerEvents.class);

    private final List<ListenerCall> direct;
    private final @Nullable EventQueue queue;
    private volatile @Nullable ListenerCall temporary;

    /**
     * Creates the publisher of one worker.
     *
     * @param direct listeners that are called on the publishing thread
     * @param listeners listeners that are called on a thread of their own
     */
    public WorkerEvents(String workerId, List<WorkerEventListener> direct, List<WorkerEventListener> listeners) {
        this.direct = direct.stream().map(ListenerCall::new).toList();
        this.queue = listeners.isEmpty()
                ? null
                : new EventQueue(
                        workerId, listeners.stream().map(ListenerCall::new).toList());
    }

    /** Begins to deliver; events published before wait. Call once. */
    public void start() {
        if (queue != null) {
            queue.start();
        }
    }

    /** Delivers what waits, at most for the given time; nothing published later is delivered. */
    public void close(Duration limit) {
        if (queue != null) {
            queue.close(limit);
        }
    }

    /** Returns true if {@code worker-events} has ended although it was not closed. */
    public boolean isDead() {
        return queue != null && queue.isDead();
    }

    /**
     * Has a part of the worker called as direct listeners are, in place of the one before.
     *
     * @param listener null for none: as long as there is no other listener either, no event is created
     */
    public void tell(@Nullable WorkerEventListener listener) {
        temporary = listener == null ? null : new ListenerCall(listener);
    }

    /** Returns false if there is no listener, so that no event need be created. */
    public boolean isWatched() {
        return queue != null || !direct.isEmpty() || temporary != null;
    }

    /**
     * Calls the direct listeners on the calling thread and queues the event for the others; never waits for them, and never
     * throws.
     */
    public void publish(WorkerEvent event) {
        try {
            for (ListenerCall listener : direct) {
                listener.deliver(event);
            }
            ListenerCall told = temporary;
            if (told != null) {
                told.deliver(event);
            }
            if (queue != null) {
                queue.add(event);
            }
        } catch (Throwable e) {
            // Memory for example that cannot be had: an event less is better than a job less.
            log.debug("An event could not be published", e);
        }
    }
}
