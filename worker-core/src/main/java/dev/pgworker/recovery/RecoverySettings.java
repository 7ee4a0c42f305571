package dev.pgworker.recovery;

import java.time.Duration;
import java.util.List;

import dev.pgworker.internal.argument.Arguments;

/**
 * How dead workers are detected and their jobs recovered. Each worker publishes its threshold, which other workers
 * apply to it. Only the flags of resilient jobs should be the same in all workers of a database.
 *
 * @param enabled whether this worker looks for dead workers; the default is true. It registers and sends heartbeats in
 *     any case
 * @param orphans whether this worker also recovers jobs of workers that are not registered; the default is false. Jobs
 *     of an unregistered worker that is alive run twice
 * @param heartbeatInterval interval between heartbeats of this worker; 1 ms to 30 minutes, the default is 30 s
 * @param sweepInterval interval between sweeps for dead workers; 1 ms to 1 day, the default is 60 s
 * @param sweepThreshold age of this worker's last heartbeat at which other workers consider it dead; at least twice the
 *     heartbeat interval and at most 30 days, the default is 5 minutes
 * @param peerThreshold minimum age of the last heartbeat at which a worker that does not publish a threshold, such as
 *     one written in Rust, is considered dead, and minimum age of an orphaned lock; 1 ms to 30 days, the default is 5
 *     minutes. Ignored if the sweep threshold is greater
 * @param recoveryDelay delay before a recovered job runs again; 0 to 365 days, the default is 30 s
 * @param resilientSweepThresholdMultiplier factor applied to the threshold of workers that hold a job with one of the
 *     resilient flags; 1 to 1000, the default is 3
 * @param resilientJobFlags flags of jobs whose workers are given more time before they are considered dead; the default
 *     is {@code infrastructure_resilient}
 * @param maxRecoveries number of times a job is recovered without counting an attempt; 0 to 1000, the default is 3
 * @since 0.1.0
 */
public record RecoverySettings(
        boolean enabled,
        boolean orphans,
        Duration heartbeatInterval,
        Duration sweepInterval,
        Duration sweepThreshold,
        Duration peerThreshold,
        Duration recoveryDelay,
        int resilientSweepThresholdMultiplier,
        List<String> resilientJobFlags,
        int maxRecoveries) {

    private static final Duration LEAST = Duration.ofMillis(1);
    private static final Duration LONGEST_THRESHOLD = Duration.ofDays(30);
    private static final Duration LONGEST_DELAY = Duration.ofDays(365);

    /** The release of old locks takes an hour without a heartbeat for death. */
    private static final Duration LONGEST_HEARTBEAT = Duration.ofMinutes(30);

    private static final Duration LONGEST_SWEEP = Duration.ofDays(1);

    /** The default settings. */
    public static final RecoverySettings DEFAULT = builder().build();

    /**
     * Validates the settings, individually and against each other.
     *
     * @throws IllegalArgumentException if a setting is out of range; the message begins with its name and states what
     *     is allowed
     */
    public RecoverySettings {
        requireBetween("heartbeatInterval", LEAST, LONGEST_HEARTBEAT, heartbeatInterval);
        requireBetween("sweepInterval", LEAST, LONGEST_SWEEP, sweepInterval);
        requireBetween("sweepThreshold", LEAST, LONGEST_THRESHOLD, sweepThreshold);
        if (sweepThreshold.compareTo(heartbeatInterval.multipliedBy(2)) < 0) {
            throw new IllegalArgumentException("sweepThreshold must be at least twice the heartbeatInterval of "
                    + heartbeatInterval + ", so that one late heartbeat is not taken for death, but is "
                    + sweepThreshold);
        }
        requireBetween("peerThreshold", LEAST, LONGEST_THRESHOLD, peerThreshold);
        requireBetween("recoveryDelay", Duration.ZERO, LONGEST_DELAY, recoveryDelay);
        Arguments.requireRange("resilientSweepThresholdMultiplier", resilientSweepThresholdMultiplier, 1, 1000);
        resilientJobFlags = Arguments.requireList("resilientJobFlags", resilientJobFlags);
        for (String flag : resilientJobFlags) {
            Arguments.requireGivenText("resilientJobFlags", flag);
        }
        Arguments.requireRange("maxRecoveries", maxRecoveries, 0, 1000);
    }

    /** Returns the threshold for workers that hold a resilient job. */
    public Duration resilientSweepThreshold() {
        return sweepThreshold.multipliedBy(resilientSweepThresholdMultiplier);
    }

    /** Returns a builder with the default settings. */
    public static Builder builder() {
        return new Builder();
    }

    private static void requireBetween(String name, Duration least, Duration most, Duration value) {
        Arguments.requireNonNull(name, value);
        if (value.compareTo(least) < 0 || value.compareTo(most) > 0) {
            throw new IllegalArgumentException(
                    name + " must be between " + words(least) + " and " + words(most) + ", but is " + value);
        }
    }

    private static String words(Duration limit) {
        if (limit.toDays() > 0) {
            return limit.toDays() + " days";
        }
        if (limit.toMinutes() > 0) {
            return limit.toMinutes() + " minutes";
        }
        return limit.toMillis() + " ms";
    }

    /**
     * Builds {@link RecoverySettings}. Not thread-safe.
     *
     * @since 0.1.0
     */
    public static final class Builder {

        private boolean enabled = true;
        private boolean orphans;
        private Duration heartbeatInterval = Duration.ofSeconds(30);
        private Duration sweepInterval = Duration.ofSeconds(60);
        private Duration sweepThreshold = Duration.ofMinutes(5);
        private Duration peerThreshold = Duration.ofMinutes(5);
        private Duration recoveryDelay = Duration.ofSeconds(30);
        private int resilientSweepThresholdMultiplier = 3;
        private List<String> resilientJobFlags = List.of("infrastructure_resilient");
        private int maxRecoveries = 3;

        private Builder() {}

        /** Sets whether the worker looks for dead workers. */
        public Builder enabled(boolean enabled) {
            this.enabled = enabled;
            return this;
        }

        /** Sets whether the worker also recovers jobs of workers that are not registered. */
        public Builder orphans(boolean orphans) {
            this.orphans = orphans;
            return this;
        }

        /** Sets the interval between heartbeats. */
        public Builder heartbeatInterval(Duration heartbeatInterval) {
            this.heartbeatInterval = heartbeatInterval;
            return this;
        }

        /** Sets the interval between sweeps for dead workers. */
        public Builder sweepInterval(Duration sweepInterval) {
            this.sweepInterval = sweepInterval;
            return this;
        }

        /** Sets the age of this worker's last heartbeat at which other workers consider it dead. */
        public Builder sweepThreshold(Duration sweepThreshold) {
            this.sweepThreshold = sweepThreshold;
            return this;
        }

        /**
         * Sets the minimum age of the last heartbeat at which a worker that does not publish a threshold is considered
         * dead.
         */
        public Builder peerThreshold(Duration peerThreshold) {
            this.peerThreshold = peerThreshold;
            return this;
        }

        /** Sets the delay before a recovered job runs again. */
        public Builder recoveryDelay(Duration recoveryDelay) {
            this.recoveryDelay = recoveryDelay;
            return this;
        }

        /** Sets the factor applied to the threshold of workers that hold a resilient job. */
        public Builder resilientSweepThresholdMultiplier(int resilientSweepThresholdMultiplier) {
            this.resilientSweepThresholdMultiplier = resilientSweepThresholdMultiplier;
            return this;
        }

        /** Sets the flags of resilient jobs. */
        public Builder resilientJobFlags(List<String> resilientJobFlags) {
            this.resilientJobFlags = resilientJobFlags;
            return this;
        }

        /** Sets the number of times a job is recovered without counting an attempt. */
        public Builder maxRecoveries(int maxRecoveries) {
            this.maxRecoveries = maxRecoveries;
            return this;
        }

        /**
         * Returns the settings.
         *
         * @throws IllegalArgumentException if a setting is out of range or inconsistent with another
         */
        public RecoverySettings build() {
            return new RecoverySettings(
                    enabled,
                    orphans,
                    heartbeatInterval,
                    sweepInterval,
                    sweepThreshold,
                    peerThreshold,
                    recoveryDelay,
                    resilientSweepThresholdMultiplier,
                    resilientJobFlags,
                    maxRecoveries);
        }
    }
}
