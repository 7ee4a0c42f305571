package dev.pgworker;

import java.time.Duration;

import dev.pgworker.history.HistorySettings;
import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.job.CleanupSettings;
import dev.pgworker.job.ResultSettings;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.step.StepSettings;
import dev.pgworker.task.CancelSettings;

/**
 * The settings of a worker.
 *
 * @param concurrency maximum number of jobs that run at the same time, 1 to 10,000; the default is the number of
 *     available processors, but at least 2
 * @param localQueueSize maximum number of jobs to claim ahead of free handlers, 0 to 10,000; the default is 1,000. No
 *     more jobs are claimed than handlers are measured to start within 50 ms. With 0, a job is claimed only when a
 *     handler is free
 * @param localQueueTtl maximum time a claimed job waits for a handler before it is released; positive, the default is 1
 *     s
 * @param queueRunLimit maximum number of jobs of one named queue to claim together, 1 to 1,000; the default is 100. No
 *     more jobs are claimed than their handler is measured to finish within 200 ms. They run one after the other. With
 *     1, a job is claimed only when the one before it has ended
 * @param pollInterval fallback polling interval, in case a notification is lost; positive, the default is 2 s
 * @param listen whether the worker listens for notifications, on a connection that it keeps open; if false, it finds
 *     jobs at the poll interval only; the default is true
 * @param shutdownGracePeriod time that running handlers are given to finish when the worker stops, before they are
 *     interrupted; the default is 5 s
 * @param interruptedJobRetryDelay delay before a job that was interrupted by a stop runs again; the default is 30 s
 * @param recovery how dead workers are detected and their jobs recovered
 * @param vacuum whether the worker vacuums the jobs table every few seconds while it finishes many jobs; the default is
 *     true
 * @param statistics whether the worker records what becomes of its jobs, and takes part in recording the backlog, for
 *     {@link dev.pgworker.statistics.JobStatistics}; the default is false
 * @param history whether and how the worker has its schema keep a history of jobs; the default is to leave that as it is
 * @param results how results are kept for those who wait for them
 * @param cleanup when the worker removes data that is no longer used by itself, and which; the default is never
 * @param cancel how handlers are ended whose jobs are cancelled
 * @param steps what is kept of the steps of jobs
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
        boolean vacuum,
        boolean statistics,
        HistorySettings history,
        ResultSettings results,
        CleanupSettings cleanup,
        CancelSettings cancel,
        StepSettings steps) {

    private static final int MOST_CONCURRENCY = 10_000;
    private static final int LARGEST_LOCAL_QUEUE = 10_000;
    private static final int LONGEST_RUN = 1_000;
    private static final Duration LONGEST = Duration.ofDays(365);
    private static final Duration STOP_ALLOWANCE = Duration.ofSeconds(15);

    /**
     * Validates the settings.
     *
     * @throws IllegalArgumentException if a setting is out of range; the message names it and the values allowed
     */
    public WorkerSettings {
        Arguments.requireRange("concurrency", concurrency, 1, MOST_CONCURRENCY);
        Arguments.requireRange("localQueueSize", localQueueSize, 0, LARGEST_LOCAL_QUEUE);
        requirePositive("localQueueTtl", localQueueTtl);
        Arguments.requireRange("queueRunLimit", queueRunLimit, 1, LONGEST_RUN);
        requirePositive("pollInterval", pollInterval);
        requireNotNegative("shutdownGracePeriod", shutdownGracePeriod);
        requireNotNegative("interruptedJobRetryDelay", interruptedJobRetryDelay);
        Arguments.requireNonNull("recovery", recovery);
        Arguments.requireNonNull("history", history);
        Arguments.requireNonNull("results", results);
        Arguments.requireNonNull("cleanup", cleanup);
        Arguments.requireNonNull("cancel", cancel);
        Arguments.requireNonNull("steps", steps);
    }

    /**
     * Returns the maximum time that stopping the worker takes. It is the grace period plus 15 s, which are needed
     * only if something does not respond.
     */
    public Duration stopLimit() {
        return shutdownGracePeriod.plus(STOP_ALLOWANCE);
    }

    /** Returns these settings with statistics recorded or not. */
    WorkerSettings withStatistics(boolean recorded) {
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
                vacuum,
                recorded,
                history,
                results,
                cleanup,
                cancel,
                steps);
    }

    /** Returns a builder with the default settings. */
    public static Builder builder() {
        return new Builder();
    }

    private static void requirePositive(String name, Duration value) {
        requireNotNegative(name, value);
        if (value.toMillis() < 1) {
            throw new IllegalArgumentException(name + " must be at least 1 ms, but is " + value);
        }
    }

    private static void requireNotNegative(String name, Duration value) {
        Arguments.requireNonNull(name, value);
        if (value.isNegative() || value.compareTo(LONGEST) > 0) {
            throw new IllegalArgumentException(
                    name + " must be between 0 and " + LONGEST.toDays() + " days, but is " + value);
        }
    }

    /**
     * Builds {@link WorkerSettings}. Not thread-safe.
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
        private boolean statistics;
        private HistorySettings history = HistorySettings.DEFAULT;
        private ResultSettings results = ResultSettings.DEFAULT;
        private CleanupSettings cleanup = CleanupSettings.DEFAULT;
        private CancelSettings cancel = CancelSettings.DEFAULT;
        private StepSettings steps = StepSettings.DEFAULT;

        private Builder() {}

        /** Sets the maximum number of jobs that run at the same time. */
        public Builder concurrency(int concurrency) {
            this.concurrency = concurrency;
            return this;
        }

        /** Sets the maximum number of jobs to claim ahead of free handlers. */
        public Builder localQueueSize(int localQueueSize) {
            this.localQueueSize = localQueueSize;
            return this;
        }

        /** Sets the maximum time a claimed job waits for a handler before it is released. */
        public Builder localQueueTtl(Duration localQueueTtl) {
            this.localQueueTtl = localQueueTtl;
            return this;
        }

        /** Sets the maximum number of jobs of one named queue to claim together. */
        public Builder queueRunLimit(int queueRunLimit) {
            this.queueRunLimit = queueRunLimit;
            return this;
        }

        /** Sets the fallback polling interval, in case a notification is lost. */
        public Builder pollInterval(Duration pollInterval) {
            this.pollInterval = pollInterval;
            return this;
        }

        /** Sets whether the worker listens for notifications. */
        public Builder listen(boolean listen) {
            this.listen = listen;
            return this;
        }

        /** Sets the time that running handlers are given to finish when the worker stops. */
        public Builder shutdownGracePeriod(Duration shutdownGracePeriod) {
            this.shutdownGracePeriod = shutdownGracePeriod;
            return this;
        }

        /** Sets the delay before a job that was interrupted by a stop runs again. */
        public Builder interruptedJobRetryDelay(Duration interruptedJobRetryDelay) {
            this.interruptedJobRetryDelay = interruptedJobRetryDelay;
            return this;
        }

        /** Sets how dead workers are detected and their jobs recovered. */
        public Builder recovery(RecoverySettings recovery) {
            this.recovery = recovery;
            return this;
        }

        /** Sets whether the worker vacuums the jobs table while it finishes many jobs. */
        public Builder vacuum(boolean vacuum) {
            this.vacuum = vacuum;
            return this;
        }

        /** Sets whether the worker records statistics. */
        public Builder statistics(boolean statistics) {
            this.statistics = statistics;
            return this;
        }

        /** Sets whether and how the worker has its schema keep a history of jobs. */
        public Builder history(HistorySettings history) {
            this.history = history;
            return this;
        }

        /** Sets how results are kept for those who wait for them. */
        public Builder results(ResultSettings results) {
            this.results = results;
            return this;
        }

        /** Sets when the worker removes data that is no longer used by itself, and which. */
        public Builder cleanup(CleanupSettings cleanup) {
            this.cleanup = cleanup;
            return this;
        }

        /** Sets how handlers are ended whose jobs are cancelled. */
        public Builder cancel(CancelSettings cancel) {
            this.cancel = cancel;
            return this;
        }

        /** Sets what is kept of the steps of jobs. */
        public Builder steps(StepSettings steps) {
            this.steps = steps;
            return this;
        }

        /**
         * Returns the settings.
         *
         * @throws IllegalArgumentException if a setting is out of range
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
                    vacuum,
                    statistics,
                    history,
                    results,
                    cleanup,
                    cancel,
                    steps);
        }
    }
}
