package dev.pgworker.internal.watch;

import java.sql.SQLException;
import java.time.Duration;
import java.util.Set;
import java.util.function.BooleanSupplier;

import org.slf4j.Logger;

import dev.pgworker.internal.engine.queue.InFlight;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.store.CancelStore;
import dev.pgworker.internal.store.Claim;

/**
 * Learns on {@code worker-cancel} which jobs of this worker have been cancelled, and has them end. Looks when it is
 * notified; where a notification may have been lost, with each heartbeat or when the lookout finds something; each
 * second without a listener connection while there are jobs here; and again and again while a cancelled job is on its
 * way here.
 */
public final class CancelWatch extends BackgroundService {

    private static final Logger log = WorkerLog.of(CancelWatch.class);

    private static final long PAUSE_NANOS = Duration.ofSeconds(1).toNanos();

    /** The same while notifications arrive. */
    private static final long LONG_PAUSE_NANOS = Duration.ofMinutes(1).toNanos();

    /** Between two looks, however often it is notified. */
    private static final long SHORTEST_PAUSE_NANOS = Duration.ofMillis(5).toNanos();

    private static final long FIRST_RECHECK_NANOS = Duration.ofMillis(20).toNanos();

    private static final long TEND_NANOS = Duration.ofSeconds(10).toNanos();

    private final String workerId;
    private final CancelStore store;
    private final InFlight inFlight;
    private final Jobs jobs;
    private final BooleanSupplier listening;

    private volatile boolean announced;
    private volatile boolean beaten;

    // Owned by the thread.
    private long recheckNanos = PAUSE_NANOS;
    private boolean anyOpen;
    private long tendAt = System.nanoTime();
    private boolean toldLocked;

    /** The jobs of a worker. */
    @FunctionalInterface
    public interface Jobs {

        /**
         * Has cancelled jobs end.
         *
         * @param held each with the time of its lock
         * @return false to be called again soon
         */
        boolean cancel(Set<Claim> held);
    }

    /**
     * Creates the watch of one worker.
     *
     * @param jobs what runs them
     * @param listening whether notifications arrive, as far as is known
     */
    public CancelWatch(
            String workerId,
            CancelStore store,
            InFlight inFlight,
            Jobs jobs,
            BooleanSupplier listening,
            Outage outage) {
        super("worker-cancel", true, outage);
        this.workerId = workerId;
        this.store = store;
        this.inFlight = inFlight;
        this.jobs = jobs;
        this.listening = listening;
    }

    /**
     * Notes that jobs of a worker have been cancelled. Returns at once.
     *
     * @param worker its id; any role may have sent it. Empty for any worker
     */
    public void announced(String worker) {
        if (worker.isEmpty() || worker.equals(workerId)) {
            announced = true;
            wake();
        }
    }

    /** Notes that it is time to look whether something was not announced. Returns at once. */
    public void beat() {
        beaten = true;
        wake();
    }

    @Override
    protected void step() throws SQLException, InterruptedException {
        if (!announced && !beaten) {
            pause(anyOpen || !listening.getAsBoolean() ? recheckNanos : LONG_PAUSE_NANOS);
        }
        try {
            lookAndTend();
            toldLocked = false;
        } catch (SQLException e) {
            tellLocked(e);
            throw e;
        }
    }

    private void lookAndTend() throws SQLException, InterruptedException {
        boolean any = beaten && store.isAny();
        beaten = false;
        boolean polls = !listening.getAsBoolean() && !inFlight.isIdle();
        if (announced || any || anyOpen || polls) {
            announced = false;
            look();
            pause(SHORTEST_PAUSE_NANOS);
        }
        if (any && System.nanoTime() - tendAt >= 0) {
            tendAt = System.nanoTime() + TEND_NANOS;
            store.tend();
        }
    }

    /** A statement is cancelled when its time is over: the table is small, so it is locked. */
    private void tellLocked(SQLException e) {
        if (toldLocked || DatabaseFailure.of(e) != DatabaseFailure.CANCELLED) {
            return;
        }
        toldLocked = true;
        log.warn(
                "The table pgworker_cancellations cannot be read, so running jobs that are cancelled are not told. Some session"
                        + " may have locked it; pg_locks tells which");
    }

    private void look() throws SQLException {
        boolean looked = false;
        try {
            boolean open = !jobs.cancel(store.requested());
            recheckNanos = recheck(open);
            anyOpen = open;
            looked = true;
        } finally {
            announced |= !looked;
        }
    }

    private long recheck(boolean open) {
        if (!open) {
            return PAUSE_NANOS;
        }
        return anyOpen ? Math.min(PAUSE_NANOS, 2 * recheckNanos) : FIRST_RECHECK_NANOS;
    }
}
