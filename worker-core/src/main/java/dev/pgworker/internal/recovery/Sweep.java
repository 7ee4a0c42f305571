package dev.pgworker.internal.recovery;

import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.lifecycle.Lease;
import dev.pgworker.internal.store.SweepReport;
import dev.pgworker.internal.store.SweepStore;
import dev.pgworker.internal.store.WorkerStore;
import dev.pgworker.recovery.RecoverySettings;

/**
 * Takes the jobs of dead workers away on {@code worker-sweep}, unless recovery is disabled, and releases locks of more than
 * four hours, in any case. The latter never are those of a live worker, which renews them.
 *
 * <p>After an outage it lets the heartbeats of others arrive before it judges them.
 */
public final class Sweep extends BackgroundService {

    private static final Logger log = LoggerFactory.getLogger(Sweep.class);

    private static final Duration CALM = Duration.ofSeconds(10);
    private static final Duration RETRY = Duration.ofSeconds(1);

    /**
     * Looking for orphans, and for what dead workers have kept, reads all jobs though nobody has died; this keeps it from
     * taking more than a hundredth of the time.
     */
    private static final int ALL_SHARE = 100;

    /** Old locks are released every 8 to 10 minutes, as by Node.js. */
    private static final Duration RELEASE = Duration.ofMinutes(8);

    private static final Duration RELEASE_SPREAD = Duration.ofMinutes(2);
    private static final Duration FIRST_RELEASE = Duration.ofMinutes(1);

    /** After so long a sweeper that is turned away says so. */
    private static final Duration TURNED_AWAY = Duration.ofMinutes(10);

    private final String workerId;
    private final RecoverySettings settings;
    private final SweepStore sweeps;
    private final WorkerStore workers;
    private final Lease lease;
    private final WorkerEvents events;

    // Owned by the thread.
    private long sweepAt = System.nanoTime();
    private long allAt = sweepAt;
    private long releaseAt;
    private boolean peerTold;
    /** Since when another sweep has been at work whenever this one tried; null if it was not. */
    private @Nullable Long turnedAwaySince;

    /**
     * Creates the sweep of one worker.
     *
     * @param firstRelease after how long to release old locks for the first time
     */
    public Sweep(
            String workerId,
            RecoverySettings settings,
            Duration firstRelease,
            SweepStore sweeps,
            WorkerStore workers,
            Lease lease,
            WorkerEvents events,
            Outage outage) {
        super("worker-sweep", true, outage);
        this.workerId = workerId;
        this.settings = settings;
        this.releaseAt = sweepAt + firstRelease.toNanos();
        this.sweeps = sweeps;
        this.workers = workers;
        this.lease = lease;
        this.events = events;
    }

    /** Returns when a worker that starts is to release old locks for the first time: soon, but not all workers at once. */
    public static Duration firstRelease() {
        return random(FIRST_RELEASE);
    }

    @Override
    protected void step() throws SQLException, InterruptedException {
        if (System.nanoTime() - releaseAt >= 0) {
            releaseOldLocks();
        }
        if (settings.enabled() && System.nanoTime() - sweepAt >= 0) {
            Duration pause = sweep() ? settings.sweepInterval() : shorter(settings.sweepInterval(), RETRY);
            sweepAt = System.nanoTime() + pause.toNanos();
        }
        long next = settings.enabled() && sweepAt - releaseAt < 0 ? sweepAt : releaseAt;
        pause(Math.max(0, next - System.nanoTime()));
    }

    private void releaseOldLocks() throws SQLException {
        WorkerStore.OldLocks found = workers.releaseOldLocks();
        if (found.released() > 0) {
            log.warn(
                    "Released {} jobs that were locked for more than four hours by workers that are gone",
                    found.released());
        }
        if (found.unindexedPeer() != null && !peerTold) {
            log.warn(
                    "A worker of Node.js or Rust, {}, works here without the index that it fetches with, so it reads all waiting"
                            + " jobs for each that it fetches. Set worker.schema.peer-indexes=always, or run: {};",
                    found.unindexedPeer(),
                    workers.peerIndex());
            peerTold = true;
        }
        releaseAt =
                System.nanoTime() + RELEASE.toNanos() + random(RELEASE_SPREAD).toNanos();
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

    /** Sweeps of other workers end soon; what goes on for long is a session that has the lock and has to be looked at. */
    private void tellTurnedAway(long time) {
        if (turnedAwaySince == null) {
            turnedAwaySince = time;
        } else if (time - turnedAwaySince - TURNED_AWAY.toNanos() >= 0) {
            log.warn(
                    "This worker has not been able to look for dead ones for {} minutes: another session holds the lock of"
                            + " sweeps; its pid is in pg_locks (locktype advisory, classid 1196905043, objid 1398228304)",
                    Duration.ofNanos(time - turnedAwaySince).toMinutes());
            turnedAwaySince = time;
        }
    }

    private static Duration shorter(Duration a, Duration b) {
        return a.compareTo(b) < 0 ? a : b;
    }

    private static Duration random(Duration most) {
        return Duration.ofNanos(ThreadLocalRandom.current().nextLong(most.toNanos()));
    }
}
