package dev.pgworker.internal.watch;

import java.sql.SQLException;
import java.time.Duration;
import java.util.function.LongSupplier;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.PeriodicService;
import dev.pgworker.internal.store.JobTableStore;
import dev.pgworker.internal.store.JobTableStore.Snapshot;

/**
 * Watches on {@code worker-snapshot}, while this worker finishes jobs, for a session that holds a snapshot for long:
 * what finished jobs leave behind in the table and its indexes cannot be removed meanwhile.
 */
public final class SnapshotWatch extends PeriodicService {

    private static final Logger log = WorkerLog.of(SnapshotWatch.class);

    private static final Duration INTERVAL = Duration.ofSeconds(10);

    private final JobTableStore table;
    private final LongSupplier finishedInTotal;
    private final Duration longest;
    private final long leastFinished;

    private volatile @Nullable Held held;

    // Owned by the thread.
    private long finishedBefore;
    private @Nullable Watched watched;

    /**
     * A snapshot that is held for long.
     *
     * @param holder who holds it, in words
     * @param age how long it was held at the last look, or had been seen to be, where the database does not show it
     * @param seenAt when that was, by {@link System#nanoTime}
     */
    private record Held(String holder, Duration age, long seenAt) {}

    /** The oldest snapshot of all at the last look. */
    private record Watched(Snapshot snapshot, long firstSeenAt, long finishedBefore) {

        private boolean isStill(Snapshot other) {
            return snapshot.transaction().equals(other.transaction())
                    && (snapshot.sessionId() == null
                            ? snapshot.holder().equals(other.holder())
                            : snapshot.sessionId().equals(other.sessionId()));
        }

        private Duration age() {
            return snapshot.age() == null ? Duration.ofNanos(System.nanoTime() - firstSeenAt) : snapshot.age();
        }
    }

    /**
     * Creates the service of one worker.
     *
     * @param finishedInTotal how many jobs the worker has finished
     * @param longest how long a session may hold a snapshot without being named
     * @param leastFinished how many jobs this worker has to finish meanwhile
     */
    public SnapshotWatch(
            JobTableStore table, LongSupplier finishedInTotal, Duration longest, long leastFinished, Outage outage) {
        super("worker-snapshot", "watch for snapshots that are held for long", outage);
        this.table = table;
        this.finishedInTotal = finishedInTotal;
        this.longest = longest;
        this.leastFinished = leastFinished;
    }

    /** Returns who keeps what finished jobs left behind; null if no session does. May be called from any thread. */
    public @Nullable String holder() {
        Held now = held;
        return now == null ? null : now.holder;
    }

    /** Returns for how long; zero if no session does. May be called from any thread. */
    public Duration age() {
        Held now = held;
        return now == null ? Duration.ZERO : now.age.plusNanos(System.nanoTime() - now.seenAt);
    }

    @Override
    protected Duration firstPause() {
        return INTERVAL.compareTo(longest) < 0 ? INTERVAL : longest;
    }

    @Override
    protected Duration work() throws SQLException {
        long finished = finishedInTotal.getAsLong();
        if (held != null || finished != finishedBefore) {
            look(finished);
        }
        return firstPause();
    }

    private void look(long finished) throws SQLException {
        Snapshot oldest = table.oldestSnapshot();
        if (oldest == null) {
            watched = null;
        } else if (watched != null && watched.isStill(oldest)) {
            watched = new Watched(oldest, watched.firstSeenAt, watched.finishedBefore);
        } else {
            watched = new Watched(oldest, System.nanoTime(), finishedBefore);
        }
        finishedBefore = finished;
        tell(watched, finished);
    }

    private void tell(@Nullable Watched now, long finished) {
        Held before = held;
        if (now != null
                && now.age().compareTo(longest) >= 0
                && (before != null || finished - now.finishedBefore >= leastFinished)) {
            held = new Held(now.snapshot.holder(), now.age(), System.nanoTime());
            if (before == null) {
                warn(now);
            }
        } else if (before != null) {
            held = null;
            log.info("The snapshot of {} is no longer held", before.holder);
        }
    }

    private static void warn(Watched now) {
        Integer session = now.snapshot.sessionId();
        log.warn(
                "A snapshot has been held for {} s by {}. Until it is released, vacuum cannot remove the dead rows of finished jobs from the"
                        + " jobs table, which grows; jobs continue to run. {}",
                now.age().toSeconds(),
                now.snapshot.holder(),
                session == null
                        ? "If it is no longer needed, drop it"
                        : "If that transaction is not needed, end it: select pg_terminate_backend(" + session
                                + "). If it is idle, set idle_in_transaction_session_timeout for its role to prevent this from happening"
                                + " again");
    }
}
