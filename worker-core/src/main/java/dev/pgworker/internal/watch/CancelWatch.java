package dev.pgworker.internal.watch;

import java.sql.SQLException;
import java.time.Duration;
import java.util.Set;
import java.util.function.BooleanSupplier;

import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.store.CancelStore;
import dev.pgworker.internal.store.Claim;

/**
 * Learns on {@code worker-cancel} which jobs of this worker have been cancelled, and has them end. Looks when it is told that there is
 * something, by a notification or, where that was lost, by the heartbeat; each second where nothing is listened to and there are
 * jobs here; and again and again while a cancelled job is on its way here.
 */
public final class CancelWatch extends BackgroundService {

    private static final long PAUSE_NANOS = Duration.ofSeconds(1).toNanos();

    /** Between two looks, however often somebody says that there is something. */
    private static final long SHORTEST_PAUSE_NANOS = Duration.ofMillis(5).toNanos();

    private static final long FIRST_RECHECK_NANOS = Duration.ofMillis(20).toNanos();

    private static final long TEND_NANOS = Duration.ofSeconds(10).toNanos();

    private final String workerId;
    private final CancelStore store;
    private final LocalQueue localQueue;
    private final Jobs jobs;
    private final BooleanSupplier listening;

    private volatile boolean announced;
    private volatile boolean anyKnown;

    // Owned by the thread.
    private long recheckNanos = PAUSE_NANOS;
    private boolean anyOpen;
    private long tendAt = System.nanoTime();

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
            LocalQueue localQueue,
            Jobs jobs,
            BooleanSupplier listening,
            Outage outage) {
        super("worker-cancel", true, outage);
        this.workerId = workerId;
        this.store = store;
        this.localQueue = localQueue;
        this.jobs = jobs;
        this.listening = listening;
    }

    /**
     * Says that jobs of a worker have been cancelled. Returns at once.
     *
     * @param worker its id; anybody may have sent it. Empty for any worker
     */
    public void announced(String worker) {
        if (worker.isEmpty() || worker.equals(workerId)) {
            announced = true;
            wake();
        }
    }

    /** Says that jobs of some worker have been cancelled lately. Returns at once. */
    public void anyKnown() {
        anyKnown = true;
        wake();
    }

    @Override
    protected void step() throws SQLException, InterruptedException {
        if (!announced && !anyKnown) {
            pause(recheckNanos);
        }
        boolean polls = !listening.getAsBoolean() && !localQueue.isIdle();
        boolean tend = anyKnown && System.nanoTime() - tendAt >= 0;
        if (announced || anyKnown || anyOpen || polls) {
            announced = false;
            anyKnown = false;
            look();
            pause(SHORTEST_PAUSE_NANOS);
        }
        if (tend) {
            tendAt = System.nanoTime() + TEND_NANOS;
            store.tend();
        }
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
