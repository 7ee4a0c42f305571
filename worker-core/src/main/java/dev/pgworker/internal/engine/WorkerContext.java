package dev.pgworker.internal.engine;

import java.util.function.Supplier;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.Started;
import dev.pgworker.internal.lifecycle.WorkSignal;

/**
 * One run of a worker, as all of its parts see it.
 *
 * @param workerId under which it locks jobs
 * @param events publishes what happens
 * @param outage where it is noted that the database cannot be used
 * @param signal wakes what claims jobs
 * @param started notes which parts of the start are done
 */
public record WorkerContext(String workerId, WorkerEvents events, Outage outage, WorkSignal signal, Started started) {

    /** Publishes an event, which is created only if there is a listener. */
    public void publish(Supplier<WorkerEvent> event) {
        if (events.isWatched()) {
            events.publish(event.get());
        }
    }
}
