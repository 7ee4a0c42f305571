package dev.pgworker.task;

import java.time.Duration;

import dev.pgworker.internal.argument.Arguments;

/**
 * How a worker ends handlers whose jobs are cancelled. {@link JobContext#isCancelled} returns true at once in any case.
 *
 * @param interruptAfter how long a handler may continue undisturbed after its job has been cancelled, before its thread is
 *     interrupted; 0 to 365 days, the default is 0
 * @param abandonAfter how long a handler may take to end after it was interrupted, before the worker continues without it, with
 *     another thread for the next job; 0 to 365 days, the default is 5 s
 * @since 0.1.0
 */
public record CancelSettings(Duration interruptAfter, Duration abandonAfter) {

    private static final Duration LONGEST = Duration.ofDays(365);

    /** The defaults. */
    public static final CancelSettings DEFAULT = new CancelSettings(Duration.ZERO, Duration.ofSeconds(5));

    /**
     * Validates the settings.
     *
     * @throws IllegalArgumentException if a setting is out of range; the message names it and the values allowed
     */
    public CancelSettings {
        require("interruptAfter", interruptAfter);
        require("abandonAfter", abandonAfter);
    }

    private static void require(String name, Duration value) {
        Arguments.requireNonNull(name, value);
        if (value.isNegative() || value.compareTo(LONGEST) > 0) {
            throw new IllegalArgumentException(
                    name + " must be between 0 and " + LONGEST.toDays() + " days, but is " + value);
        }
    }
}
