package dev.pgworker.internal.recovery;

import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.lifecycle.Lease;
import dev.pgworker.internal.lifecycle.WorkSignal;

/**
 * Watches the worker's lease on {@code worker-watchdog} and reports once when it is lost. Apart from the heartbeat,
 * whose thread may wait for a database that does not answer.
 */
public final class LeaseWatchdog extends BackgroundService implements WorkSignal.Receiver {

    private final Lease lease;
    private final Runnable onLost;
    private boolean told;

    /**
     * Creates a watch.
     *
     * @param onLost called on the watching thread; must return soon
     */
    public LeaseWatchdog(Lease lease, Runnable onLost, Outage outage) {
        super("worker-watchdog", true, outage);
        this.lease = lease;
        this.onLost = onLost;
    }

    @Override
    public void leaseChanged() {
        wake();
    }

    @Override
    protected void step() throws InterruptedException {
        if (told) {
            pause(Long.MAX_VALUE);
        } else if (lease.isLost()) {
            onLost.run();
            told = true;
        } else {
            pause(lease.nanosUntilCheck());
        }
    }
}
