package dev.pgworker;

import java.time.Duration;

import dev.pgworker.recovery.RecoverySettings;

/**
 * How a worker works.
 *
 * @param concurrency how many jobs run at the same time, 1 to 10,000; the number of processors, but at least 2, unless
 *     set
 * @param localQueueSize how many jobs may be claimed ahead of free handlers, 0 to 10,000; 1,000 unless set. So many are only
 *     as handlers are measured to start within 50 ms; 0 claims a job when a handler is free for it
 * @param localQueueTtl how long a claimed job may wait for a handler before it is given back; positive, 1 s unless set
 * @param queueRunLimit how many jobs of one named queue may be claimed at a time, 1 to 1,000; 100 unless set. So many are
 *     only as their handler is measured to finish within 50 ms; they run one after the other. 1 claims a job when the one
 *     before it has ended
 * @param pollInterval how often to look for jobs although nothing announced any; positive, 2 s unless set
 * @param listen whether the worker listens for notifications, on a connection that it keeps; if not, it learns of jobs at the poll
 *     interval only; true unless set
 * @param shutdownGracePeriod how long handlers may go on when the worker stops, before they are interrupted; 5 s unless
 *     set
 * @param interruptedJobRetryDelay when a job that was interrupted by a stop runs again; 30 s unless set
 * @param recovery how dead workers are told from living ones, and what becomes of their jobs
 * @param vacuum whether the worker vacuums the table of jobs every few seconds while it finishes many; true unless set
 * @since 0.1.0
 */
public record WorkerSettings(
        int concurrency,
        int localQueueSize,
        Duration localQueueTtl,
        int queueRunLimit,
        Duration pollInterval,
        boolean listen,
        Duration shutdownGracePeriod,
        Duration interruptedJobRetryDelay,
        RecoverySettings recovery,
        boolean vacuum) {

    private static final int MOST_CONCURRENCY = 10_000;
    private static final int LARGEST_LOCAL_QUEUE = 10_000;
    private static final int LONGEST_RUN = 1_000;
    private static final Duration LONGEST = Duration.ofDays(365);
    private static final Duration STOP_ALLOWANCE = Duration.ofSeconds(15);

    /**
     * Checks every setting.
     *
     * @throws IllegalArgumentException if one is out of its range; the message names it and says what is allowed
     */
    public WorkerSettings {
        requireBetween("concurrency", 1, MOST_CONCURRENCY, concurrency);
        requireBetween("localQueueSize", 0, LARGEST_LOCAL_QUEUE, localQueueSize);
        requirePositive("localQueueTtl", localQueueTtl);
        requireBetween("queueRunLimit", 1, LONGEST_RUN, queueRunLimit);
        requirePositive("pollInterval", pollInterval);
        requireNotNegative("shutdownGracePeriod", shutdownGracePeriod);
        requireNotNegative("interruptedJobRetryDelay", interruptedJobRetryDelay);
    }

    /**
     * Returns how long a stop of the worker takes at most, whatever handlers, listeners and the database do: the grace period
     * and 15 s, which are needed only where something does not answer.
     */
    public Duration stopLimit() {
        return shutdownGracePeriod.plus(STOP_ALLOWANCE);
    }

    /** Returns a builder that has the defaults. */
    public static Builder builder() {
        return new Builder();
    }

    private static void requireBetween(String name, int least, int most, int value) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(
                    name + " must be between " + least + " and " + most + ", but is " + value);
        }
    }

    private static void requirePositive(String name, Duration value) {
        requireNotNegative(name, value);
        if (value.toMillis() < 1) {
            throw new IllegalArgumentException(name + " must be at least 1 ms, but is " + value);
        }
    }

    private static void requireNotNegative(String name, Duration value) {
        if (value.isNegative() || value.compareTo(LONGEST) > 0) {
            throw new IllegalArgumentException(
                    name + " must be between 0 and " + LONGEST.toDays() + " days, but is " + value);
        }
    }

    /**
     * Builds {@link WorkerSettings}. Not safe for use by several threads.
     *
     * @since 0.1.0
     */
    public static final class Builder {

        private int concurrency = Math.max(2, Runtime.getRuntime().availableProcessors());
        private int localQueueSize = 1_000;
        private Duration localQueueTtl = Duration.ofSeconds(1);
        private int queueRunLimit = 100;
        private Duration pollInterval = Duration.ofSeconds(2);
        private boolean listen = true;
        private Duration shutdownGracePeriod = Duration.ofSeconds(5);
        private Duration interruptedJobRetryDelay = Duration.ofSeconds(30);
        private RecoverySettings recovery = RecoverySettings.DEFAULT;
        private boolean vacuum = true;

        private Builder() {}

        /** Sets how many jobs run at the same time. */
        public Builder concurrency(int concurrency) {
            this.concurrency = concurrency;
            return this;
        }

        /** Sets how many jobs may be claimed ahead of free handlers. */
        public Builder localQueueSize(int localQueueSize) {
            this.localQueueSize = localQueueSize;
            return this;
        }

        /** Sets how long a claimed job may wait for a handler before it is given back. */
        public Builder localQueueTtl(Duration localQueueTtl) {
            this.localQueueTtl = localQueueTtl;
            return this;
        }

        /** Sets how many jobs of one named queue may be claimed at a time. */
        public Builder queueRunLimit(int queueRunLimit) {
            this.queueRunLimit = queueRunLimit;
            return this;
        }

        /** Sets how often to look for jobs although nothing announced any. */
        public Builder pollInterval(Duration pollInterval) {
            this.pollInterval = pollInterval;
            return this;
        }

        /** Sets whether the worker listens for notifications. */
        public Builder listen(boolean listen) {
            this.listen = listen;
            return this;
        }

        /** Sets how long handlers may go on when the worker stops. */
        public Builder shutdownGracePeriod(Duration shutdownGracePeriod) {
            this.shutdownGracePeriod = shutdownGracePeriod;
            return this;
        }

        /** Sets when a job that was interrupted by a stop runs again. */
        public Builder interruptedJobRetryDelay(Duration interruptedJobRetryDelay) {
            this.interruptedJobRetryDelay = interruptedJobRetryDelay;
            return this;
        }

        /** Sets how dead workers are told from living ones, and what becomes of their jobs. */
        public Builder recovery(RecoverySettings recovery) {
            this.recovery = recovery;
            return this;
        }

        /** Sets whether the worker vacuums the table of jobs while it finishes many. */
        public Builder vacuum(boolean vacuum) {
            this.vacuum = vacuum;
            return this;
        }

        /**
         * Returns the settings.
         *
         * @throws IllegalArgumentException if one is out of its range
         */
        public WorkerSettings build() {
            return new WorkerSettings(
                    concurrency,
                    localQueueSize,
                    localQueueTtl,
                    queueRunLimit,
                    pollInterval,
                    listen,
                    shutdownGracePeriod,
                    interruptedJobRetryDelay,
                    recovery,
                    vacuum);
        }
    }
}
