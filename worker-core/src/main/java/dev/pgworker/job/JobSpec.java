package dev.pgworker.job;

import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * Specifies how a job is scheduled. A value that is null takes the database's default.
 *
 * @param queueName the named queue whose jobs run one at a time, 1 to 128 characters; null for none
 * @param runAt the earliest time at which the job runs; null for the database's current time
 * @param maxAttempts maximum number of attempts, 1 to 32767; null for 25
 * @param jobKey a key that is unique among waiting, running and failed jobs, 1 to 512 characters; null for none
 * @param jobKeyMode what happens if a job with the key exists; null for {@link JobKeyMode#REPLACE}
 * @param priority the priority, -32768 to 32767; jobs with a numerically smaller priority run first; null for 0
 * @param flags flags by which workers may refuse to run the job; empty for none
 * @since 0.1.0
 */
public record JobSpec(
        @Nullable String queueName,
        @Nullable Instant runAt,
        @Nullable Integer maxAttempts,
        @Nullable String jobKey,
        @Nullable JobKeyMode jobKeyMode,
        @Nullable Integer priority,
        List<String> flags) {

    /** Runs a job as soon as possible, with the database's defaults. */
    public static final JobSpec DEFAULT = new JobSpec(null, null, null, null, null, null, List.of());

    /**
     * Validates the attributes.
     *
     * @throws IllegalArgumentException if an attribute is out of range; the message names it and the values allowed
     */
    public JobSpec {
        Arguments.requireQueueName(queueName);
        Arguments.requireInstant("runAt", runAt);
        Arguments.requireRange("maxAttempts", maxAttempts, 1, Short.MAX_VALUE);
        Arguments.requireJobKey(jobKey);
        Arguments.requireRange("priority", priority, Short.MIN_VALUE, Short.MAX_VALUE);
        Arguments.requireFlags(Arguments.requireNonNull("flags", flags));
        if (jobKeyMode != null && jobKey == null) {
            throw new IllegalArgumentException("jobKeyMode must be null when there is no jobKey, but is " + jobKeyMode);
        }
        flags = List.copyOf(flags);
    }

    /** Returns a builder with nothing set. */
    public static Builder builder() {
        return new Builder();
    }

    /** Returns a builder with the values of this spec. */
    public Builder toBuilder() {
        Builder builder = new Builder();
        builder.queueName = queueName;
        builder.runAt = runAt;
        builder.maxAttempts = maxAttempts;
        builder.jobKey = jobKey;
        builder.jobKeyMode = jobKeyMode;
        builder.priority = priority;
        builder.flags = flags;
        return builder;
    }

    /**
     * Builds a {@link JobSpec}. Not thread-safe.
     *
     * @since 0.1.0
     */
    public static final class Builder {

        private @Nullable String queueName;
        private @Nullable Instant runAt;
        private @Nullable Integer maxAttempts;
        private @Nullable String jobKey;
        private @Nullable JobKeyMode jobKeyMode;
        private @Nullable Integer priority;
        private List<String> flags = List.of();

        private Builder() {}

        /** Sets the named queue, 1 to 128 characters; null for none. */
        public Builder queueName(@Nullable String queueName) {
            this.queueName = queueName;
            return this;
        }

        /** Sets the earliest time at which the job runs; null for the database's current time. */
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

        /** Sets the maximum number of attempts, 1 to 32767; null for 25. */
        public Builder maxAttempts(@Nullable Integer maxAttempts) {
            this.maxAttempts = maxAttempts;
            return this;
        }

        /** Sets the job key, 1 to 512 characters; null for none. */
        public Builder jobKey(@Nullable String jobKey) {
            this.jobKey = jobKey;
            return this;
        }

        /** Sets what happens if a job with the key exists; null for {@link JobKeyMode#REPLACE}. */
        public Builder jobKeyMode(@Nullable JobKeyMode jobKeyMode) {
            this.jobKeyMode = jobKeyMode;
            return this;
        }

        /** Sets the priority, -32768 to 32767; jobs with a numerically smaller priority run first; null for 0. */
        public Builder priority(@Nullable Integer priority) {
            this.priority = priority;
            return this;
        }

        /** Sets the flags, replacing those set before. */
        public Builder flags(String... flags) {
            return flags(Arrays.asList(Arguments.requireNonNull("flags", flags)));
        }

        /** Sets the flags, replacing those set before. */
        public Builder flags(List<String> flags) {
            this.flags = flags;
            return this;
        }

        /**
         * Returns the spec.
         *
         * @throws IllegalArgumentException if an attribute is out of range
         */
        public JobSpec build() {
            return new JobSpec(queueName, runAt, maxAttempts, jobKey, jobKeyMode, priority, flags);
        }
    }
}
