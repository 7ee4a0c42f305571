package dev.pgworker.job;

import java.time.Duration;
import java.time.Instant;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * What {@link JobAdmin#reschedule} changes about jobs. What is null stays as it is; at least one value must be set.
 *
 * <p>A permanently failed job runs again only if {@code attempts} is set below its maximum, or the maximum above.
 *
 * @param runAt the instant before which the job does not run
 * @param priority jobs with a smaller one run first, -32768 to 32767
 * @param attempts how many attempts count as used, 0 to 32767
 * @param maxAttempts how often the job may be attempted, 1 to 32767
 * @since 0.1.0
 */
public record Rescheduling(
        @Nullable Instant runAt,
        @Nullable Integer priority,
        @Nullable Integer attempts,
        @Nullable Integer maxAttempts) {

    /**
     * Checks every value.
     *
     * @throws IllegalArgumentException if one is out of its range, or none is set
     */
    public Rescheduling {
        Arguments.requireInstant("runAt", runAt);
        Arguments.requireRange("priority", priority, Short.MIN_VALUE, Short.MAX_VALUE);
        Arguments.requireRange("attempts", attempts, 0, Short.MAX_VALUE);
        Arguments.requireRange("maxAttempts", maxAttempts, 1, Short.MAX_VALUE);
        if (runAt == null && priority == null && attempts == null && maxAttempts == null) {
            throw new IllegalArgumentException("One of runAt, priority, attempts and maxAttempts must be set");
        }
    }

    /** Returns a builder with nothing set. */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Builds a {@link Rescheduling}. Not thread-safe.
     *
     * @since 0.1.0
     */
    public static final class Builder {

        private @Nullable Instant runAt;
        private @Nullable Integer priority;
        private @Nullable Integer attempts;
        private @Nullable Integer maxAttempts;

        private Builder() {}

        /** Sets the instant before which the job does not run. */
        public Builder runAt(@Nullable Instant runAt) {
            this.runAt = runAt;
            return this;
        }

        /** Sets {@code runAt} to the given time from the moment of this call, by the clock of this JVM. */
        public Builder runIn(Duration delay) {
            return runAt(Instant.now().plus(delay));
        }

        /** Sets the priority, -32768 to 32767, smaller first. */
        public Builder priority(@Nullable Integer priority) {
            this.priority = priority;
            return this;
        }

        /** Sets how many attempts count as used, 0 to 32767. */
        public Builder attempts(@Nullable Integer attempts) {
            this.attempts = attempts;
            return this;
        }

        /** Sets how often the job may be attempted, 1 to 32767. */
        public Builder maxAttempts(@Nullable Integer maxAttempts) {
            this.maxAttempts = maxAttempts;
            return this;
        }

        /**
         * Returns the rescheduling.
         *
         * @throws IllegalArgumentException if a value is out of its range, or none is set
         */
        public Rescheduling build() {
            return new Rescheduling(runAt, priority, attempts, maxAttempts);
        }
    }
}
