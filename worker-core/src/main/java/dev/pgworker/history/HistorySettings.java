package dev.pgworker.history;

import java.time.Duration;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * Whether and how a worker has its schema keep a history. A history belongs to the schema: it contains the jobs of all its
 * workers, and whichever worker starts last with {@code enabled} set decides.
 *
 * @param enabled whether the worker switches the history on (true) or off (false) when it starts; null, the default, to
 *     leave it as it is. When it is switched off, entries stay until they expire
 * @param keepFor how long entries are kept, unless there are too many; 1 minute to 3650 days, the default is 14 days.
 *     Applies only if {@code enabled} is true
 * @param keepMost the number of entries beyond which the oldest are dropped early; 1,000 to 10,000,000,000, the default is
 *     1,000,000. Applies only if {@code enabled} is true
 * @param payloads whether entries contain the payloads of jobs; the default is true. Payloads of more than 64 KB are never
 *     kept. Applies only if {@code enabled} is true
 * @param maxResultSize the size in bytes, as UTF-8, up to which this worker keeps the results of its jobs; 0 to keep none,
 *     at most 16 MB, the default is 64 KB
 * @since 0.1.0
 */
public record HistorySettings(
        @Nullable Boolean enabled, Duration keepFor, long keepMost, boolean payloads, int maxResultSize) {

    private static final Duration SHORTEST = Duration.ofMinutes(1);
    private static final Duration LONGEST = Duration.ofDays(3650);
    private static final long FEWEST = 1_000;
    private static final long MOST = 10_000_000_000L;
    private static final int LARGEST_RESULT = 16 * 1024 * 1024;

    /** The default settings. */
    public static final HistorySettings DEFAULT = builder().build();

    /**
     * Validates the settings.
     *
     * @throws IllegalArgumentException if a setting is out of range; the message begins with its name and states what
     *     is allowed
     */
    public HistorySettings {
        Arguments.requireNonNull("keepFor", keepFor);
        if (keepFor.compareTo(SHORTEST) < 0 || keepFor.compareTo(LONGEST) > 0) {
            throw new IllegalArgumentException("keepFor must be between 1 minute and 3650 days, but is " + keepFor);
        }
        if (keepMost < FEWEST || keepMost > MOST) {
            throw new IllegalArgumentException(
                    "keepMost must be between " + FEWEST + " and " + MOST + ", but is " + keepMost);
        }
        Arguments.requireRange("maxResultSize", maxResultSize, 0, LARGEST_RESULT);
    }

    /** Returns a builder with the default settings. */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Builds {@link HistorySettings}. Not thread-safe.
     *
     * @since 0.1.0
     */
    public static final class Builder {

        private @Nullable Boolean enabled;
        private Duration keepFor = Duration.ofDays(14);
        private long keepMost = 1_000_000;
        private boolean payloads = true;
        private int maxResultSize = 64 * 1024;

        private Builder() {}

        /** Sets whether the worker switches the history on or off when it starts; null to leave it as it is. */
        public Builder enabled(@Nullable Boolean enabled) {
            this.enabled = enabled;
            return this;
        }

        /** Sets how long entries are kept, unless there are too many. */
        public Builder keepFor(Duration keepFor) {
            this.keepFor = keepFor;
            return this;
        }

        /** Sets the number of entries beyond which the oldest are dropped early. */
        public Builder keepMost(long keepMost) {
            this.keepMost = keepMost;
            return this;
        }

        /** Sets whether entries contain the payloads of jobs. */
        public Builder payloads(boolean payloads) {
            this.payloads = payloads;
            return this;
        }

        /** Sets the size in bytes up to which this worker keeps the results of its jobs. */
        public Builder maxResultSize(int maxResultSize) {
            this.maxResultSize = maxResultSize;
            return this;
        }

        /**
         * Returns the settings.
         *
         * @throws IllegalArgumentException if a setting is out of range
         */
        public HistorySettings build() {
            return new HistorySettings(enabled, keepFor, keepMost, payloads, maxResultSize);
        }
    }
}
