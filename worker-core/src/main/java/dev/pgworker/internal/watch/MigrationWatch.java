package dev.pgworker.internal.watch;

import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;

import org.slf4j.Logger;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.PeriodicService;
import dev.pgworker.internal.store.MigrationStore;

/**
 * Looks into the ledger on {@code worker-migrations} when a migration is announced. Any role that may connect to the
 * database can announce any, and migrations of other schemas are announced alike, so that nothing but the ledger is
 * believed. Ten looks may follow each other at once, for there is one at each connection of the listener, too; however
 * many announcements come, there is one look a second afterwards.
 */
public final class MigrationWatch extends PeriodicService {

    private static final Logger log = WorkerLog.of(MigrationWatch.class);

    private static final Duration USUAL_INTERVAL = Duration.ofSeconds(1);

    private static final int MOST_AT_ONCE = 10;

    /** The newest id that is known not to matter. */
    private static final int NEWEST_KNOWN = 22;

    private final String workerId;
    private final MigrationStore ledger;
    private final Runnable onBreaking;
    private final WorkerEvents events;
    private final Duration interval;
    private final AtomicBoolean announced = new AtomicBoolean();

    // Owned by the thread.
    private int newest = NEWEST_KNOWN;
    private boolean toldBreaking;

    /** The looks so far, an interval each, have taken the time until then. */
    private long spentUntil = System.nanoTime();

    /**
     * Creates a watch.
     *
     * @param onBreaking called on the watching thread, once, when the ledger shows that this worker cannot continue
     */
    public MigrationWatch(
            String workerId, MigrationStore ledger, Runnable onBreaking, WorkerEvents events, Outage outage) {
        this(workerId, ledger, onBreaking, events, outage, USUAL_INTERVAL);
    }

    MigrationWatch(
            String workerId,
            MigrationStore ledger,
            Runnable onBreaking,
            WorkerEvents events,
            Outage outage,
            Duration interval) {
        super("worker-migrations", "look for migrations that are announced", outage);
        this.workerId = workerId;
        this.ledger = ledger;
        this.onBreaking = onBreaking;
        this.events = events;
        this.interval = interval;
    }

    /** Notes that a migration may have been made. Never waits; may be called from any thread. */
    public void migrationAnnounced() {
        if (announced.compareAndSet(false, true)) {
            wake();
        }
    }

    @Override
    protected Duration work() throws SQLException {
        long ahead = Math.max(0, spentUntil - System.nanoTime());
        long rest = ahead - (MOST_AT_ONCE - 1) * interval.toNanos();
        if (rest > 0 && announced.get()) {
            return Duration.ofNanos(rest);
        } else if (!announced.getAndSet(false)) {
            return UNTIL_WOKEN;
        }
        try {
            look();
        } catch (SQLException | RuntimeException | Error e) {
            announced.set(true);
            throw e;
        }
        spentUntil = System.nanoTime() + ahead + interval.toNanos();
        return UNTIL_WOKEN;
    }

    private void look() throws SQLException {
        MigrationStore.Ledger found = ledger.read();
        boolean breaks = found.breaking() && !toldBreaking;
        if (breaks || found.newest() > newest) {
            newest = Math.max(newest, found.newest());
            events.publish(new WorkerEvent.SchemaMigrated(workerId, found.newest(), found.breaking()));
        }
        if (breaks) {
            toldBreaking = true;
            log.error(
                    "The schema has been migrated by a newer Graphile Worker (ledger id {}), with which this version cannot work",
                    found.newest());
            onBreaking.run();
        }
    }
}
