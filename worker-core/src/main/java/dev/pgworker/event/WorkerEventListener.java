package dev.pgworker.event;

/**
 * Watches a worker. Called on the worker's own threads, as each event says: do little, and hand longer work over. What
 * it throws is logged and changes nothing.
 */
@FunctionalInterface
public interface WorkerEventListener {

    /** Receives one event. */
    void onEvent(WorkerEvent event);
}
