package dev.pgworker.internal.recovery;

import java.sql.SQLException;
import java.time.Duration;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.lifecycle.Lease;
import dev.pgworker.internal.store.WorkerStore;

/**
 * Keeps the worker registered on {@code worker-heartbeat}, and its lease alive. A worker that is not registered looks like a
 * dead one to sweeps, which take its jobs away; one whose registration a sweep has deleted does not come back under the
 * same id. Stopping the heartbeat deregisters the worker.
 */
public final class Heartbeat extends BackgroundService {

    private static final Logger log = WorkerLog.of(Heartbeat.class);

    private final WorkerStore store;
    private final String workerId;
    private final String metadata;
    private final long intervalNanos;
    private final Lease lease;
    private final Runnable onBeat;

    // Owned by the thread.
    private boolean registered;

    private volatile boolean staysRegistered;

    /** When the last heartbeat was written, by {@link System#nanoTime}; 0 before the first. */
    private volatile long beatAt;

    /**
     * Creates the heartbeat of one worker.
     *
     * @param store closed at the end
     * @param metadata JSON that describes the worker to operators
     * @param onBeat called with each heartbeat, even a failed one; must return at once
     */
    public Heartbeat(
            WorkerStore store,
            String workerId,
            String metadata,
            Duration interval,
            Lease lease,
            Runnable onBeat,
            Outage outage) {
        super("worker-heartbeat", true, outage);
        this.store = store;
        this.workerId = workerId;
        this.metadata = metadata;
        this.intervalNanos = interval.toNanos();
        this.lease = lease;
        this.onBeat = onBeat;
    }

    /** Leaves the registration when the heartbeat stops, so that a sweep finds what the worker could not give back. */
    public void stayRegistered() {
        staysRegistered = true;
    }

    @Override
    protected void step() throws SQLException, InterruptedException {
        long sentAt = System.nanoTime();
        onBeat.run();
        if (store.heartbeat(workerId, metadata, !registered)) {
            registered = true;
            lease.renew(sentAt);
            beatAt = System.nanoTime();
        } else {
            lease.revoke();
        }
        pause(intervalNanos);
    }

    /** Returns the time since the last heartbeat was written; null if none has been. */
    public @Nullable Duration sinceBeat() {
        long at = beatAt;
        return at == 0 ? null : Duration.ofNanos(System.nanoTime() - at);
    }

    @Override
    protected void afterLastStep() {
        try {
            if (!staysRegistered) {
                store.deregister(workerId);
            }
        } catch (SQLException e) {
            log.warn("Worker {} could not be deregistered; its registration becomes stale instead", workerId, e);
        } finally {
            store.close();
        }
    }
}
