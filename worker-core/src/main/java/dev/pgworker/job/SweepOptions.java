package dev.pgworker.job;

import java.time.Duration;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * The options of a manual sweep for dead workers.
 *
 * @param threshold the age of the last heartbeat beyond which a worker is considered dead, positive; null for {@code
 *     pgworker.recovery.sweep-threshold}. The handlers of a live worker with an older heartbeat are interrupted
 * @param recoveryDelay the delay before recovered jobs run again, not negative; null for {@code
 *     pgworker.recovery.recovery-delay}
 * @param dryRun whether to only find the dead workers
 * @since 0.1.0
 */
public record SweepOptions(
        @Nullable Duration threshold, @Nullable Duration recoveryDelay, boolean dryRun) {

    /** The options with which workers sweep. */
    public static final SweepOptions DEFAULT = new SweepOptions(null, null, false);

    /**
     * Validates the values.
     *
     * @throws IllegalArgumentException if a value is out of range; the message names it and the values allowed
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
