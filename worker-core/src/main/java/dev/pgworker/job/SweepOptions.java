package dev.pgworker.job;

import java.time.Duration;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * How to look for dead workers by hand.
 *
 * @param threshold how old the last heartbeat of a dead worker is, positive; null for
 *     {@code worker.recovery.sweep-threshold}. A live worker with an older one finds its handlers interrupted
 * @param recoveryDelay when recovered jobs run again, not negative; null for {@code worker.recovery.recovery-delay}
 * @param dryRun whether to find the dead workers only
 * @since 0.1.0
 */
public record SweepOptions(
        @Nullable Duration threshold, @Nullable Duration recoveryDelay, boolean dryRun) {

    /** Sweeps as workers do. */
    public static final SweepOptions DEFAULT = new SweepOptions(null, null, false);

    /**
     * Checks every value.
     *
     * @throws IllegalArgumentException if one is out of its range; the message names it and says what is allowed
     */
    public SweepOptions {
        if (threshold != null) {
            Arguments.requireNotNegative("threshold", threshold);
            if (threshold.isZero()) {
                throw new IllegalArgumentException("threshold must be positive, but is " + threshold);
            }
        }
        if (recoveryDelay != null) {
            Arguments.requireNotNegative("recoveryDelay", recoveryDelay);
        }
    }
}
