package dev.pgworker.event;

/**
 * Watches a worker.
 *
 * <p>Events are handed over to the thread {@code worker-events}, which calls all listeners in order: a slow one delays
 * nothing but events. When too many wait, new ones are thrown away and counted; {@link WorkerEvent.EventsDropped} says
 * so. A direct listener, see {@code Worker.Builder.directListener}, is called on the worker's own threads, as each event
 * says, and misses none. What a listener throws is logged and changes nothing.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface WorkerEventListener {

    /** Receives one event. */
    void onEvent(WorkerEvent event);
}
