package dev.pgworker.job;

import java.time.Duration;
import java.time.Instant;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * The changes that {@link JobChanges#reschedule} makes to jobs. Values that are null are left unchanged; at least one
 * value must be set.
 *
 * <p>A permanently failed job runs again only if {@code attempts} is set to less than its maximum, or the maximum to
 * more than its attempts.
 *
 * @param runAt the earliest time at which the job runs
 * @param priority the priority, -32768 to 32767; jobs with a numerically smaller priority run first
 * @param attempts number of attempts that count as used, 0 to 32767
 * @param maxAttempts maximum number of attempts, 1 to 32767
 * @since 0.1.0
 */
public record Rescheduling(
        @Nullable Instant runAt,
        @Nullable Integer priority,
        @Nullable Integer attempts,
        @Nullable Integer maxAttempts) {

    /**
     * Validates the values.
     *
     * @throws IllegalArgumentException if a value is out of range, or if none is set
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

        /** Sets the earliest time at which the job runs. */
        public Builder runAt(@Nullable Instant runAt) {
            this.runAt = runAt;
            return this;
        }

        /**
         * Sets {@code runAt} to the given duration from now, by this JVM's clock at the time of this call.
         *
         * @param delay 36,500 days at most; a negative one leads into the past
         * @throws IllegalArgumentException if the delay is null or longer
         */
        public Builder runIn(Duration delay) {
            return runAt(Instant.now().plus(Arguments.requireDelay(delay)));
        }

        /** Sets the priority, -32768 to 32767; jobs with a numerically smaller priority run first. */
        public Builder priority(@Nullable Integer priority) {
            this.priority = priority;
            return this;
        }

        /** Sets the number of attempts that count as used, 0 to 32767. */
        public Builder attempts(@Nullable Integer attempts) {
            this.attempts = attempts;
            return this;
        }

        /** Sets the maximum number of attempts, 1 to 32767. */
        public Builder maxAttempts(@Nullable Integer maxAttempts) {
            this.maxAttempts = maxAttempts;
            return this;
        }

        /**
         * Returns the rescheduling.
         *
         * @throws IllegalArgumentException if a value is out of range, or if none is set
         */
        public Rescheduling build() {
            return new Rescheduling(runAt, priority, attempts, maxAttempts);
        }
    }
}
