package dev.pgworker.internal.lifecycle;

import java.time.Duration;
import java.util.function.BooleanSupplier;

import com.google.errorprone.annotations.concurrent.GuardedBy;

/**
 * How long a worker may still rely on the locks that it holds. Each heartbeat renews it, from the moment before the
 * heartbeat was sent; others consider the worker dead a threshold after the moment at which it arrived, which is later.
 * It ends a tenth of the threshold earlier, 5 s at most, so that handlers are interrupted by then even on a busy machine.
 * A lease that is lost stays lost. Thread-safe.
 *
 * <p>Time is that of {@link System#nanoTime}, which continues while the process is stopped by a signal.
 */
public final class Lease {

    private static final long RECHECK_NANOS = Duration.ofMillis(100).toNanos();
    private static final long LONGEST_MARGIN_NANOS = Duration.ofSeconds(5).toNanos();

    private final long thresholdNanos;
    private final long nanos;
    private final long resilientNanos;
    private final BooleanSupplier resilientJobRuns;
    private final Runnable onChange;

    private volatile boolean begun;
    private volatile boolean lost;
    private volatile boolean revoked;
    private volatile long renewedAt;

    /** When the present row of timely heartbeats began. */
    @GuardedBy("this") private long steadySince;

    /** Creates a lease that has not begun, of a worker without resilient jobs. */
    public Lease(Duration threshold, Duration resilientThreshold) {
        this(threshold, resilientThreshold, () -> false, () -> {});
    }

    /**
     * Creates a lease that has not begun.
     *
     * @param threshold after what time without a heartbeat others consider the worker dead
     * @param resilientThreshold the same while the worker runs a resilient job
     * @param resilientJobRuns returns whether it does
     * @param onChange called, on any thread, when the lease has begun or was revoked; must return soon
     */
    public Lease(Duration threshold, Duration resilientThreshold, BooleanSupplier resilientJobRuns, Runnable onChange) {
        this.resilientJobRuns = resilientJobRuns;
        this.onChange = onChange;
        thresholdNanos = threshold.toNanos();
        nanos = withoutMargin(thresholdNanos);
        resilientNanos = withoutMargin(resilientThreshold.toNanos());
    }

    private static long withoutMargin(long threshold) {
        return threshold - Math.min(threshold / 10, LONGEST_MARGIN_NANOS);
    }

    /**
     * Takes note of a heartbeat.
     *
     * @param sentAt the {@link System#nanoTime} before it was sent
     */
    public void renew(long sentAt) {
        if (isLost()) {
            return;
        }
        boolean first = !begun;
        synchronized (this) {
            // A gap shorter than this is a late heartbeat; a longer one may be an outage that others suffer, too.
            if (first || sentAt - renewedAt > thresholdNanos / 4 * 3) {
                steadySince = sentAt;
            }
        }
        renewedAt = sentAt;
        begun = true;
        if (first) {
            onChange.run();
        }
    }

    /** Ends the lease because others have declared the worker dead. */
    public void revoke() {
        revoked = true;
        lost = true;
        onChange.run();
    }

    /** Returns true if the worker is registered and cannot have been declared dead. */
    public boolean isHeld() {
        return begun && !isLost();
    }

    /** Returns true if the worker was registered and others may have taken its jobs since. */
    public boolean isLost() {
        if (!lost && begun) {
            long age = System.nanoTime() - renewedAt;
            if (age >= nanos && (age >= resilientNanos || !resilientJobRuns.getAsBoolean())) {
                lost = true;
            }
        }
        return lost;
    }

    /** Returns true if others have declared the worker dead. */
    public boolean isRevoked() {
        return revoked;
    }

    /** Returns true if the lease is held and heartbeats have been on time for that long. */
    public synchronized boolean isSteadyFor(Duration time) {
        return isHeld() && System.nanoTime() - steadySince >= time.toNanos();
    }

    /** Returns how long ago the last heartbeat was sent, or how long a heartbeat lasts if there was none yet. */
    public long nanosSinceRenewal() {
        return begun ? System.nanoTime() - renewedAt : nanos;
    }

    /** Returns how long it makes sense to wait before looking whether the lease is lost. */
    public long nanosUntilCheck() {
        if (!begun) {
            return nanos;
        }
        long left = nanos - (System.nanoTime() - renewedAt);
        return left > 0 ? left : RECHECK_NANOS;
    }
}
