package dev.pgworker.internal.watch;

import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

import org.slf4j.Logger;

import dev.pgworker.internal.engine.queue.InFlight;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.PeriodicService;
import dev.pgworker.internal.store.JobTableStore;

/**
 * Vacuums the table of jobs on {@code worker-vacuum} while this worker finishes many. The table and its indexes
 * grow by what finished jobs leave behind, and autovacuum comes once a minute at most.
 *
 * <p>It takes a tenth of the time at most, stays away while nothing happens, and shares the work with other workers:
 * one that finds that the table was vacuumed just now does not.
 */
public final class Vacuum extends PeriodicService {

    private static final Logger log = WorkerLog.of(Vacuum.class);

    /** The SQLSTATE of a statement that was cancelled, by its client, an operator or a limit. */
    private static final String CANCELLED = "57014";

    private static final Duration SHORTEST_INTERVAL = Duration.ofSeconds(3);

    private static final Duration INTERVAL_IN_VAIN = Duration.ofMinutes(2);

    /** Fewer finished jobs than this are not worth it. */
    private static final long LEAST_FINISHED = 20_000;

    /** The share of the time in which a vacuum may run is one in so many. */
    private static final int SHARE = 10;

    private final JobTableStore table;
    private final InFlight inFlight;
    private final SnapshotWatch snapshots;

    /** How often, and after what pauses, a vacuum is cancelled that had perhaps not begun. */
    private static final int CANCELLATIONS = 10;

    private static final Duration BETWEEN_CANCELLATIONS = Duration.ofMillis(200);

    // Owned by the thread.
    private boolean hasToldOfCancellation;
    private boolean knowsWhetherItMay;
    private boolean forbidden;
    private long finishedBefore;
    private long vacuumedAt = System.nanoTime();
    private long intervalNanos = SHORTEST_INTERVAL.toNanos();

    /** Creates the service of one worker, whose finished jobs the local queue counts. */
    public Vacuum(JobTableStore table, InFlight inFlight, SnapshotWatch snapshots, Outage outage) {
        super("worker-vacuum", "vacuum the table of jobs", outage);
        this.table = table;
        this.inFlight = inFlight;
        this.snapshots = snapshots;
    }

    /** Ends a vacuum that runs, so that the stop need not wait for it. Returns at once: the server may not answer. */
    public void cancel() {
        try {
            Thread thread = new Thread(this::cancelNow, "worker-vacuum-cancel");
            thread.setDaemon(true);
            thread.start();
        } catch (Error e) {
            log.debug("There is no thread that could cancel a vacuum", e);
        }
    }

    private void cancelNow() {
        try {
            for (int i = 0; i < CANCELLATIONS && table.cancelVacuum(); i++) {
                Thread.sleep(BETWEEN_CANCELLATIONS.toMillis());
            }
        } catch (SQLException e) {
            log.debug("The vacuum could not be cancelled", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    protected Duration firstPause() {
        return SHORTEST_INTERVAL;
    }

    @Override
    protected Duration work() throws SQLException {
        long finished = inFlight.settledInTotal();
        if (finished - finishedBefore >= LEAST_FINISHED && isAllowed() && !isInVain()) {
            Duration since = table.sinceVacuum();
            if (since == null || since.toNanos() >= intervalNanos / 2) {
                vacuum();
            }
            finishedBefore = finished;
        }
        return Duration.ofNanos(intervalNanos);
    }

    private boolean isAllowed() throws SQLException {
        if (!knowsWhetherItMay) {
            forbidden = !table.mayVacuum();
            knowsWhetherItMay = true;
            if (forbidden) {
                log.info(
                        "The role of this worker may not VACUUM the jobs table, which grows by the dead rows of finished"
                                + " jobs until autovacuum runs. Make the role the owner of the table or, on PostgreSQL 17 and later,"
                                + " grant it MAINTAIN");
            }
        }
        return !forbidden;
    }

    /** While a snapshot is held a vacuum reads everything and removes next to nothing. */
    private boolean isInVain() {
        return snapshots.holder() != null && System.nanoTime() - vacuumedAt < INTERVAL_IN_VAIN.toNanos();
    }

    /** Autovacuum remains, which has no limit. */
    private void failed(SQLException e, Duration after) {
        if (CANCELLED.equals(e.getSQLState()) && !isStopping() && !hasToldOfCancellation) {
            hasToldOfCancellation = true;
            log.warn(
                    "The vacuum of the jobs table was cancelled after {} s: each attempt may end like this, and the dead rows"
                            + " of finished jobs slow down claims. If the reason is the role's statement_timeout, disable it for this role;"
                            + " if it is the limit of one hour, raise maintenance_work_mem and rebuild the table's indexes"
                            + " (REINDEX TABLE CONCURRENTLY), or leave the vacuum to autovacuum with pgworker.vacuum=false",
                    after.toSeconds());
        } else {
            log.debug("The table of jobs could not be vacuumed", e);
        }
    }

    private void vacuum() {
        long start = System.nanoTime();
        try {
            table.vacuum();
        } catch (SQLException e) {
            failed(e, Duration.ofNanos(System.nanoTime() - start));
        }
        vacuumedAt = System.nanoTime();
        long took = vacuumedAt - start;
        intervalNanos = Math.max(SHORTEST_INTERVAL.toNanos(), SHARE * took);
        log.debug("Vacuumed the table of jobs in {} ms", TimeUnit.NANOSECONDS.toMillis(took));
    }
}
