package dev.pgworker.internal.recovery;

import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.store.WorkerStore;

/**
 * Locks of more than four hours, which are released every 8 to 10 minutes, as by Node.js. They never are those of a live
 * worker, which renews them. Used by one thread.
 */
public final class OldLocks {

    private static final Logger log = WorkerLog.of(OldLocks.class);

    private static final Duration INTERVAL = Duration.ofMinutes(8);
    private static final Duration INTERVAL_SPREAD = Duration.ofMinutes(2);
    private static final Duration FIRST_SPREAD = Duration.ofMinutes(1);

    private final WorkerStore workers;
    private long dueAt;
    private boolean peerTold;

    /** Creates those of one schema. They are released for the first time soon, but not by all workers at once. */
    public OldLocks(WorkerStore workers) {
        this(workers, random(FIRST_SPREAD));
    }

    /**
     * Creates those of one schema.
     *
     * @param first after how long to release them for the first time
     */
    OldLocks(WorkerStore workers, Duration first) {
        this.workers = workers;
        this.dueAt = System.nanoTime() + first.toNanos();
    }

    /** Returns when to release them next, by {@link System#nanoTime}. */
    long dueAt() {
        return dueAt;
    }

    /** Releases them if it is time. */
    void releaseWhenDue() throws SQLException {
        if (System.nanoTime() - dueAt >= 0) {
            release();
            dueAt = System.nanoTime()
                    + INTERVAL.toNanos()
                    + random(INTERVAL_SPREAD).toNanos();
        }
    }

    private void release() throws SQLException {
        WorkerStore.OldLocks found = workers.releaseOldLocks();
        if (found.released() > 0) {
            log.warn(
                    "Released {} jobs that were locked for more than four hours by workers that are gone",
                    found.released());
        }
        if (found.unindexedPeer() != null && !peerTold) {
            log.warn(
                    "A Node.js or Rust worker, {}, uses this schema without the index that it fetches jobs with, so it reads all waiting"
                            + " jobs for each job that it fetches. Set pgworker.schema.peer-indexes=always, or run: {};",
                    found.unindexedPeer(),
                    workers.peerIndex());
            peerTold = true;
        }
    }

    private static Duration random(Duration most) {
        return Duration.ofNanos(ThreadLocalRandom.current().nextLong(most.toNanos()));
    }
}
