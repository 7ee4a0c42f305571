package dev.pgworker.internal.store;

import java.time.Duration;
import java.time.Instant;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * A time in the future: one of the two is set.
 *
 * @param delay the time from the database's present, not negative
 * @param at the instant itself
 */
public record RetryTime(@Nullable Duration delay, @Nullable Instant at) {

    /** So long that the database can still add it to its time. */
    static final Duration LONGEST = Duration.ofDays(365L * 250_000);

    /**
     * Checks that the database can hold the time.
     *
     * @throws IllegalArgumentException if it cannot
     */
    public RetryTime {
        Arguments.requireInstant("The time of the next run", at);
        if (delay != null && (delay.isNegative() || delay.compareTo(LONGEST) > 0)) {
            throw new IllegalArgumentException(
                    "The time until the next run must be between 0 and " + LONGEST.toDays() + " days, but is " + delay);
        }
    }

    /** Returns the time after a delay. */
    public static RetryTime in(Duration delay) {
        return new RetryTime(delay, null);
    }
}
