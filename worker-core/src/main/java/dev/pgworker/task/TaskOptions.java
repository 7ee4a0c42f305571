package dev.pgworker.task;

import java.time.Duration;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * Options that apply to all jobs of a task.
 *
 * @param maxAttempts the attempt at which a failing job fails permanently even if the job allows more attempts, 1 to
 *     32767; null to use the job's maximum
 * @param timeout how long an attempt may take before it is interrupted and fails, positive; null for no timeout
 * @param retryPolicy determines how long a failed job waits; null for the usual back-off
 * @param transactional whether the handler runs in a transaction that also completes its job
 * @param direct whether jobs are locked, run and deleted in one transaction, many at a time; cannot be combined with
 *     {@code transactional}
 * @since 0.1.0
 */
public record TaskOptions(
        @Nullable Integer maxAttempts,
        @Nullable Duration timeout,
        @Nullable RetryPolicy retryPolicy,
        boolean transactional,
        boolean direct) {

    /** The default options, which leave everything to the job. */
    public static final TaskOptions DEFAULT = new TaskOptions(null, null, null, false, false);

    /**
     * Validates the options.
     *
     * @throws IllegalArgumentException if an option is out of range
     */
    public TaskOptions {
        Arguments.requireRange("maxAttempts", maxAttempts, 1, Short.MAX_VALUE);
        if (timeout != null && (timeout.isNegative() || timeout.isZero())) {
            throw new IllegalArgumentException("timeout must be positive, but is " + timeout);
        }
        if (direct && transactional) {
            throw new IllegalArgumentException("a task cannot be both direct and transactional");
        }
    }

    /** Returns a copy of these options with the given maximum number of attempts. */
    public TaskOptions withMaxAttempts(@Nullable Integer maxAttempts) {
        return new TaskOptions(maxAttempts, timeout, retryPolicy, transactional, direct);
    }

    /** Returns a copy of these options with the given timeout. */
    public TaskOptions withTimeout(@Nullable Duration timeout) {
        return new TaskOptions(maxAttempts, timeout, retryPolicy, transactional, direct);
    }

    /** Returns a copy of these options with the given retry policy. */
    public TaskOptions withRetryPolicy(@Nullable RetryPolicy retryPolicy) {
        return new TaskOptions(maxAttempts, timeout, retryPolicy, transactional, direct);
    }

    /**
     * Returns a copy of these options that determines whether the handler runs in a transaction that also completes its
     * job.
     */
    public TaskOptions withTransactional(boolean transactional) {
        return new TaskOptions(maxAttempts, timeout, retryPolicy, transactional, direct);
    }

    /**
     * Returns a copy of these options that determines whether jobs are locked, run and deleted in one transaction; see
     * {@link JobHandler#direct}.
     */
    public TaskOptions withDirect(boolean direct) {
        return new TaskOptions(maxAttempts, timeout, retryPolicy, transactional, direct);
    }
}
