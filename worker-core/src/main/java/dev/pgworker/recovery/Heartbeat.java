package dev.pgworker.recovery;

import java.sql.SQLException;
import java.time.Duration;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.lifecycle.BackgroundService;
import dev.pgworker.lifecycle.Outage;
import dev.pgworker.store.WorkerStore;

/**
 * Keeps the worker registered on {@code worker-timer}. A worker that is not registered looks like a dead one to the
 * Rust worker's sweep, which takes its jobs away. Stopping the heartbeat deregisters the worker.
 */
public final class Heartbeat extends BackgroundService {

    private static final Logger log = LoggerFactory.getLogger(Heartbeat.class);

    private final WorkerStore store;
    private final String workerId;
    private final String metadata;
    private final long intervalNanos;

    /** When the last sign of life was written, by {@link System#nanoTime}; 0 before the first. */
    private volatile long beatAt;

    /**
     * Creates the heartbeat of one worker.
     *
     * @param metadata JSON that describes the worker to operators
     */
    public Heartbeat(WorkerStore store, String workerId, String metadata, Duration interval, Outage outage) {
        super("worker-timer", true, outage);
        this.store = store;
        this.workerId = workerId;
        this.metadata = metadata;
        this.intervalNanos = interval.toNanos();
    }

    @Override
    protected void step() throws SQLException, InterruptedException {
        store.heartbeat(workerId, metadata);
        beatAt = System.nanoTime();
        pause(intervalNanos);
    }

    /** Returns the time since the last sign of life was written; null if none has been. */
    public @Nullable Duration sinceBeat() {
        long at = beatAt;
        return at == 0 ? null : Duration.ofNanos(System.nanoTime() - at);
    }

    @Override
    protected void afterLastStep() {
        try {
            store.deregister(workerId);
        } catch (SQLException e) {
            log.warn("Worker {} could not be deregistered; its registration becomes stale instead", workerId, e);
        }
    }
}
