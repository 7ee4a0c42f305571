package dev.pgworker.task;

import java.time.Duration;
import java.time.Instant;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * Thrown by a handler to say what becomes of its job, where a plain exception would have it retried as usual:
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
     * What becomes of the job.
     *
     * @since 0.1.0
     */
    public enum Decision {
        /** It has failed permanently, whatever attempts are left. */
        FAIL,
        /** It runs again at a time that the handler chose; the attempt counts. */
        RETRY,
        /** It runs again at a time that the handler chose; the attempt does not count, and nothing failed. */
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

    /** The job fails permanently, for this reason. */
    public static JobControlException failPermanently(String reason) {
        return failPermanently(reason, null);
    }

    /** The job fails permanently, for this reason and with this cause. */
    public static JobControlException failPermanently(String reason, @Nullable Throwable cause) {
        return new JobControlException(Decision.FAIL, null, null, reason, cause);
    }

    /** The attempt fails for this reason, and the job is retried after the given time, by the database's clock. */
    public static JobControlException retryIn(Duration delay, String reason, @Nullable Throwable cause) {
        Arguments.requireNotNegative("delay", delay);
        return new JobControlException(Decision.RETRY, delay, null, reason, cause);
    }

    /** The attempt fails for this reason, and the job is retried at the given instant. */
    public static JobControlException retryAt(Instant runAt, String reason, @Nullable Throwable cause) {
        Arguments.requireInstant("runAt", Arguments.requireNonNull("runAt", runAt));
        return new JobControlException(Decision.RETRY, null, runAt, reason, cause);
    }

    /** The job runs again after the given time, by the database's clock, and this attempt does not count. */
    public static JobControlException snoozeFor(Duration delay) {
        Arguments.requireNotNegative("delay", delay);
        return new JobControlException(Decision.SNOOZE, delay, null, "Snoozed for " + delay, null);
    }

    /** The job runs again at the given instant, and this attempt does not count. */
    public static JobControlException snoozeUntil(Instant runAt) {
        Arguments.requireInstant("runAt", Arguments.requireNonNull("runAt", runAt));
        return new JobControlException(Decision.SNOOZE, null, runAt, "Snoozed until " + runAt, null);
    }

    /** Returns what becomes of the job. */
    public Decision decision() {
        return decision;
    }

    /** Returns how long the job waits, or null if there is an instant or no further run. */
    public @Nullable Duration delay() {
        return delay;
    }

    /** Returns when the job runs again, or null if there is a delay or no further run. */
    public @Nullable Instant runAt() {
        return runAt;
    }
}
