package dev.pgworker.task;

import java.time.Duration;
import java.time.Instant;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * Thrown by a handler to decide what happens to its job, instead of the usual retry:
 *
 * <pre>{@code
 * throw JobControlException.failPermanently("There is no account " + id);
 * }</pre>
 *
 * A surrounding transaction of the handler rolls back, as with any runtime exception.
 *
 * @since 0.1.0
 */
public final class JobControlException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    /**
     * What happens to the job.
     *
     * @since 0.1.0
     */
    public enum Decision {
        /** The job fails permanently, even if it has attempts left. */
        FAIL,
        /** The attempt fails, and the job runs again at a time chosen by the handler; the attempt counts. */
        RETRY,
        /** The job runs again at a time chosen by the handler; the attempt does not count and is not a failure. */
        SNOOZE
    }

    private final Decision decision;
    private final transient @Nullable Duration delay;
    private final transient @Nullable Instant runAt;

    private JobControlException(
            Decision decision,
            @Nullable Duration delay,
            @Nullable Instant runAt,
            @Nullable String message,
            @Nullable Throwable cause) {
        super(message, cause);
        this.decision = decision;
        this.delay = delay;
        this.runAt = runAt;
    }

    /** Returns an exception with which the job fails permanently, for the given reason. */
    public static JobControlException failPermanently(String reason) {
        return failPermanently(reason, null);
    }

    /** Returns an exception with which the job fails permanently, for the given reason and with the given cause. */
    public static JobControlException failPermanently(String reason, @Nullable Throwable cause) {
        return new JobControlException(Decision.FAIL, null, null, reason, cause);
    }

    /**
     * Returns an exception with which the attempt fails for the given reason and the job is retried after the given
     * delay, by the database's clock.
     */
    public static JobControlException retryIn(Duration delay, String reason, @Nullable Throwable cause) {
        Arguments.requireNotNegative("delay", delay);
        return new JobControlException(Decision.RETRY, delay, null, reason, cause);
    }

    /**
     * Returns an exception with which the attempt fails for the given reason and the job is retried at the given time.
     */
    public static JobControlException retryAt(Instant runAt, String reason, @Nullable Throwable cause) {
        Arguments.requireInstant("runAt", Arguments.requireNonNull("runAt", runAt));
        return new JobControlException(Decision.RETRY, null, runAt, reason, cause);
    }

    /**
     * Returns an exception with which the job runs again after the given delay, by the database's clock, without
     * counting this attempt.
     */
    public static JobControlException snoozeFor(Duration delay) {
        Arguments.requireNotNegative("delay", delay);
        return new JobControlException(Decision.SNOOZE, delay, null, "Snoozed for " + delay, null);
    }

    /** Returns an exception with which the job runs again at the given time, without counting this attempt. */
    public static JobControlException snoozeUntil(Instant runAt) {
        Arguments.requireInstant("runAt", Arguments.requireNonNull("runAt", runAt));
        return new JobControlException(Decision.SNOOZE, null, runAt, "Snoozed until " + runAt, null);
    }

    /** Returns what happens to the job. */
    public Decision decision() {
        return decision;
    }

    /**
     * Returns the delay before the job runs again, or null if the time is given by {@link #runAt} or the job does not
     * run again.
     */
    public @Nullable Duration delay() {
        return delay;
    }

    /**
     * Returns when the job runs again, or null if the time is given by {@link #delay} or the job does not run again.
     */
    public @Nullable Instant runAt() {
        return runAt;
    }
}
