package dev.pgworker.job;

import java.time.Duration;

import dev.pgworker.internal.argument.Arguments;

/**
 * How results are kept for those who wait for them.
 *
 * @param keepFor how long the result of a job is kept after its end, if this application has added the job; 1 second to 3650 days,
 *     the default is 1 hour. Of the results of all applications, the database keeps 100,000 at most
 * @param maxSize the size in bytes, as UTF-8, up to which this worker keeps the result of a job that is waited for; 1
 *     to 16 MB, the default is 1 MB. Who waits for a larger one learns that it is too large
 * @since 0.1.0
 */
public record ResultSettings(Duration keepFor, int maxSize) {

    private static final Duration SHORTEST = Duration.ofSeconds(1);
    private static final Duration LONGEST = Duration.ofDays(3650);
    private static final int LARGEST = 16 * 1024 * 1024;

    /** The default settings. */
    public static final ResultSettings DEFAULT = new ResultSettings(Duration.ofHours(1), 1024 * 1024);

    /**
     * Validates the settings.
     *
     * @throws IllegalArgumentException if a setting is out of range; the message begins with its name and states what
     *     is allowed
     */
    public ResultSettings {
        Arguments.requireNonNull("keepFor", keepFor);
        if (keepFor.compareTo(SHORTEST) < 0 || keepFor.compareTo(LONGEST) > 0) {
            throw new IllegalArgumentException("keepFor must be between 1 second and 3650 days, but is " + keepFor);
        }
        Arguments.requireRange("maxSize", maxSize, 1, LARGEST);
    }
}
