package dev.pgworker.internal.recovery;

import java.sql.SQLException;
import java.time.Duration;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.Lease;
import dev.pgworker.internal.lifecycle.PeriodicService;
import dev.pgworker.internal.store.SweepReport;
import dev.pgworker.internal.store.SweepStore;
import dev.pgworker.recovery.RecoverySettings;

/**
 * Takes the jobs of dead workers away on {@code worker-sweep}, unless recovery is disabled, and in any case has {@link OldLocks}
 * released when it is time.
 *
 * <p>After an outage it lets the heartbeats of others arrive before it judges them.
 */
public final class Sweep extends PeriodicService {

    private static final Logger log = WorkerLog.of(Sweep.class);

    private static final Duration CALM = Duration.ofSeconds(10);
    private static final Duration RETRY = Duration.ofSeconds(1);

    /**
     * Looking for orphans, and for what dead workers have kept, reads all jobs though no worker has died; this keeps it
     * from taking more than a hundredth of the time.
     */
    private static final int ALL_SHARE = 100;

    /** After so long a sweeper that is turned away logs that. */
    private static final Duration TURNED_AWAY = Duration.ofMinutes(10);

    private final String workerId;
    private final RecoverySettings settings;
    private final SweepStore sweeps;
    private final OldLocks oldLocks;
    private final Lease lease;
    private final WorkerEvents events;

    // Owned by the thread.
    private long sweepAt = System.nanoTime();
    private long allAt = sweepAt;
    /** Since when another sweep has been at work whenever this one tried; null if it was not. */
    private @Nullable Long turnedAwaySince;

    /** Creates the sweep of one worker. */
    public Sweep(
            String workerId,
            RecoverySettings settings,
            SweepStore sweeps,
            OldLocks oldLocks,
            Lease lease,
            WorkerEvents events,
            Outage outage) {
        super("worker-sweep", "sweep for dead workers", outage);
        this.workerId = workerId;
        this.settings = settings;
        this.sweeps = sweeps;
        this.oldLocks = oldLocks;
        this.lease = lease;
        this.events = events;
    }

    @Override
    protected Duration work() throws SQLException {
        oldLocks.releaseWhenDue();
        if (settings.enabled() && System.nanoTime() - sweepAt >= 0) {
            Duration pause = sweep() ? settings.sweepInterval() : shorter(settings.sweepInterval(), RETRY);
            sweepAt = System.nanoTime() + pause.toNanos();
        }
        long releaseAt = oldLocks.dueAt();
        long next = settings.enabled() && sweepAt - releaseAt < 0 ? sweepAt : releaseAt;
        return Duration.ofNanos(Math.max(0, next - System.nanoTime()));
    }

    /** Handlers decide about all jobs of a sweep in one step, for up to five minutes: then the server ends its transaction. */
    @Override
    public boolean isStuck(Duration longerThan) {
        return super.isStuck(longerThan.multipliedBy(3));
    }

    /** Returns false if this is not the moment: another sweep is at work, or this worker's own life is in doubt. */
    private boolean sweep() throws SQLException {
        if (!lease.isSteadyFor(shorter(settings.sweepThreshold(), CALM))) {
            return false;
        }
        long begin = System.nanoTime();
        boolean all = begin - allAt >= 0;
        SweepStore.Request request = SweepStore.Request.of(settings);
        SweepStore.Result result = sweeps.sweep(all ? request : request.ofTheNewlyDead(), workerId);
        if (!result.locked()) {
            tellTurnedAway(begin);
            return false;
        }
        turnedAwaySince = null;
        if (all) {
            long end = System.nanoTime();
            allAt = end + ALL_SHARE * (end - begin);
        }
        SweepReport.tell(result, workerId, events);
        return true;
    }

    /** Sweeps of other workers end soon; what continues for long is a session that has the lock and has to be looked at. */
    private void tellTurnedAway(long time) {
        if (turnedAwaySince == null) {
            turnedAwaySince = time;
        } else if (time - turnedAwaySince - TURNED_AWAY.toNanos() >= 0) {
            log.warn(
                    "This worker has not been able to look for dead workers for {} minutes: another session holds the lock for"
                            + " sweeps; its pid is in pg_locks (relation _private_workers, mode ShareUpdateExclusiveLock)",
                    Duration.ofNanos(time - turnedAwaySince).toMinutes());
            turnedAwaySince = time;
        }
    }

    private static Duration shorter(Duration a, Duration b) {
        return a.compareTo(b) < 0 ? a : b;
    }
}
