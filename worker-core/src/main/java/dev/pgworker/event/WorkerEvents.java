package dev.pgworker.event;

import java.util.List;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Hands events to the listeners, in order, and keeps their failures away from the worker. */
public final class WorkerEvents {

    private static final Logger log = LoggerFactory.getLogger(WorkerEvents.class);

    private final List<WorkerEventListener> listeners;

    /** Creates a publisher for the given listeners. */
    public WorkerEvents(List<WorkerEventListener> listeners) {
        this.listeners = List.copyOf(listeners);
    }

    /** Returns false if nobody listens, so that no event need be made. */
    public boolean isWatched() {
        return !listeners.isEmpty();
    }

    /** Calls every listener on the calling thread. */
    public void publish(WorkerEvent event) {
        for (WorkerEventListener listener : listeners) {
            try {
                listener.onEvent(event);
            } catch (RuntimeException | LinkageError e) {
                log.warn("Listener {} failed on {}", listener.getClass().getName(), event, e);
            }
        }
    }
}
