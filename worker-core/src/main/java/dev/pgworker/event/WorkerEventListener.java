package dev.pgworker.event;

/**
 * Receives the events of a worker.
 *
 * <p>Events are passed to the thread {@code worker-events}, which calls all listeners in order, so a slow listener
 * delays nothing but events. When too many events are waiting, new ones are dropped and counted; {@link
 * WorkerEvent.EventsDropped} reports their number. A direct listener, see {@code Worker.Builder.directListener}, is
 * called on the worker's own threads, as documented for each event, and receives every event. Exceptions thrown by a
 * listener are logged and have no other effect.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface WorkerEventListener {

    /** Receives one event. */
    void onEvent(WorkerEvent event);
}
