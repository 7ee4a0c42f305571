package dev.pgworker.task;

import java.time.Duration;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * How the jobs of one task are run, whatever the jobs themselves say.
 *
 * @param maxAttempts the attempt at which a failing job fails permanently even if it would have more, 1 to 32767; null
 *     to leave that to the job
 * @param timeout how long an attempt may take before it is interrupted and fails, positive; null for any time
 * @param retryPolicy how long a failed job waits; null for the usual back-off
 * @param transactional whether the handler runs in a transaction that also completes its job
 * @param direct whether jobs are locked, run and deleted in one transaction, many at a time; not with {@code transactional}
 * @since 0.1.0
 */
public record TaskOptions(
        @Nullable Integer maxAttempts,
        @Nullable Duration timeout,
        @Nullable RetryPolicy retryPolicy,
        boolean transactional,
        boolean direct) {

    /** Leaves everything to the job. */
    public static final TaskOptions DEFAULT = new TaskOptions(null, null, null, false, false);

    /**
     * Checks every option.
     *
     * @throws IllegalArgumentException if one is out of its range
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

    /** Returns these options with a limit of attempts. */
    public TaskOptions withMaxAttempts(@Nullable Integer maxAttempts) {
        return new TaskOptions(maxAttempts, timeout, retryPolicy, transactional, direct);
    }

    /** Returns these options with a timeout. */
    public TaskOptions withTimeout(@Nullable Duration timeout) {
        return new TaskOptions(maxAttempts, timeout, retryPolicy, transactional, direct);
    }

    /** Returns these options with a retry policy. */
    public TaskOptions withRetryPolicy(@Nullable RetryPolicy retryPolicy) {
        return new TaskOptions(maxAttempts, timeout, retryPolicy, transactional, direct);
    }

    /** Returns these options with the handler run in a transaction that also completes its job, or not. */
    public TaskOptions withTransactional(boolean transactional) {
        return new TaskOptions(maxAttempts, timeout, retryPolicy, transactional, direct);
    }

    /** Returns these options with jobs locked, run and deleted in one transaction, or not: see {@link JobHandler#direct}. */
    public TaskOptions withDirect(boolean direct) {
        return new TaskOptions(maxAttempts, timeout, retryPolicy, transactional, direct);
    }
}
