package dev.pgworker.step;

import java.time.Duration;

import dev.pgworker.internal.argument.Arguments;

/**
 * What is kept of the steps of jobs.
 *
 * @param maxResultSize the size in bytes, as UTF-8, that the result of a step may have; 1 to 64 MB, the default is 1 MB
 * @param keepSignals how long signals are kept for which no job waits, unless their senders specify a time; 1 second to
 *     3650 days, the default is 7 days
 * @since 0.1.0
 */
public record StepSettings(int maxResultSize, Duration keepSignals) {

    private static final int LARGEST = 64 * 1024 * 1024;

    private static final Duration SHORTEST_KEPT = Duration.ofSeconds(1);

    private static final Duration LONGEST_KEPT = Duration.ofDays(3650);

    /** The default settings. */
    public static final StepSettings DEFAULT = new StepSettings(1024 * 1024, Duration.ofDays(7));

    /**
     * Validates the settings.
     *
     * @throws IllegalArgumentException if a setting is out of range; the message names it and the values allowed
     */
    public StepSettings {
        Arguments.requireRange("maxResultSize", maxResultSize, 1, LARGEST);
        Arguments.requireNonNull("keepSignals", keepSignals);
        if (keepSignals.compareTo(SHORTEST_KEPT) < 0 || keepSignals.compareTo(LONGEST_KEPT) > 0) {
            throw new IllegalArgumentException(
                    "keepSignals must be between 1 second and 3650 days, but is " + keepSignals);
        }
    }
}
