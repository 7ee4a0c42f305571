package dev.pgworker.task;

import java.time.Duration;
import java.util.Collection;
import java.util.Collections;
import java.util.Set;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * Options that apply to all jobs of a task.
 *
 * @param maxAttempts the attempt at which a failing job fails permanently even if the job allows more attempts, 1 to
 *     32767; null to use the job's maximum
 * @param timeout how long an attempt may take before it is interrupted and fails, positive; null for no timeout
 * @param retryDelay determines how long a failed job waits; null for the usual back-off
 * @param transactional whether the handler runs in a transaction that also completes its job
 * @param direct whether jobs are locked, run and deleted in one transaction, many at a time; cannot be combined with
 *     {@code transactional}
 * @param noRetryFor types of exceptions after which a job fails permanently, see {@link #retries}
 * @param retryFor types of exceptions after which a job is retried, see {@link #retries}
 * @since 0.1.0
 */
public record TaskOptions(
        @Nullable Integer maxAttempts,
        @Nullable Duration timeout,
        @Nullable RetryDelay retryDelay,
        boolean transactional,
        boolean direct,
        Set<Class<? extends Throwable>> noRetryFor,
        Set<Class<? extends Throwable>> retryFor) {

    /** So many causes are looked at: an exception may be its own cause's cause. */
    private static final int MOST_CAUSES = 50;

    /** The default options, which leave everything to the job. */
    public static final TaskOptions DEFAULT = new TaskOptions(null, null, null, false, false, Set.of(), Set.of());

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
        noRetryFor = Collections.unmodifiableSet(Arguments.requireElements("noRetryFor", noRetryFor));
        retryFor = Collections.unmodifiableSet(Arguments.requireElements("retryFor", retryFor));
        for (Class<? extends Throwable> type : noRetryFor) {
            if (retryFor.contains(type)) {
                throw new IllegalArgumentException("noRetryFor and retryFor must not both have " + type.getName());
            }
        }
    }

    /**
     * Returns whether an attempt that failed with this exception is followed by another one, if the job has attempts left.
     *
     * <p>Of the types of {@link #noRetryFor} and {@link #retryFor} the one decides that is closest to the exception: its class, or
     * else the nearest superclass. If none fits, its cause is asked, and the cause of that. If none fits either, it is
     * retried, unless only {@code retryFor} has types. Not asked about what the database does to the transaction of a
     * {@link #transactional} handler before or after it.
     */
    public boolean retries(Throwable error) {
        if (error instanceof PayloadException payload && payload.isInvalid()) {
            return false;
        }
        if (noRetryFor.isEmpty() && retryFor.isEmpty()) {
            return true;
        }
        Throwable asked = error;
        for (int depth = 0; asked != null && depth < MOST_CAUSES; depth++) {
            int not = distance(asked.getClass(), noRetryFor);
            int yes = distance(asked.getClass(), retryFor);
            if (not != yes) {
                return yes < not;
            }
            asked = cause(asked);
        }
        return retryFor.isEmpty() || !noRetryFor.isEmpty();
    }

    /** An exception may be of any class, and its methods may fail. */
    private static @Nullable Throwable cause(Throwable error) {
        try {
            return error.getCause();
        } catch (RuntimeException | Error e) {
            return null;
        }
    }

    /** Returns how many steps up from a class the nearest of the types is; the largest number if none is above it. */
    private static int distance(Class<?> type, Set<Class<? extends Throwable>> types) {
        int steps = 0;
        for (Class<?> above = type; above != null && !types.isEmpty(); above = above.getSuperclass()) {
            if (types.contains(above)) {
                return steps;
            }
            steps++;
        }
        return Integer.MAX_VALUE;
    }

    /** Returns a copy of these options with the given maximum number of attempts. */
    public TaskOptions withMaxAttempts(@Nullable Integer maxAttempts) {
        return new TaskOptions(maxAttempts, timeout, retryDelay, transactional, direct, noRetryFor, retryFor);
    }

    /** Returns a copy of these options with the given timeout. */
    public TaskOptions withTimeout(@Nullable Duration timeout) {
        return new TaskOptions(maxAttempts, timeout, retryDelay, transactional, direct, noRetryFor, retryFor);
    }

    /** Returns a copy of these options with the given retry delay. */
    public TaskOptions withRetryDelay(@Nullable RetryDelay retryDelay) {
        return new TaskOptions(maxAttempts, timeout, retryDelay, transactional, direct, noRetryFor, retryFor);
    }

    /**
     * Returns a copy of these options that determines whether the handler runs in a transaction that also completes its
     * job.
     */
    public TaskOptions withTransactional(boolean transactional) {
        return new TaskOptions(maxAttempts, timeout, retryDelay, transactional, direct, noRetryFor, retryFor);
    }

    /**
     * Returns a copy of these options that determines whether jobs are locked, run and deleted in one transaction; see
     * {@link JobHandler#direct}.
     */
    public TaskOptions withDirect(boolean direct) {
        return new TaskOptions(maxAttempts, timeout, retryDelay, transactional, direct, noRetryFor, retryFor);
    }

    /** Returns a copy of these options with these types of exceptions after which a job fails permanently. */
    public TaskOptions withNoRetryFor(Collection<Class<? extends Throwable>> noRetryFor) {
        return new TaskOptions(
                maxAttempts,
                timeout,
                retryDelay,
                transactional,
                direct,
                Arguments.requireElements("noRetryFor", noRetryFor),
                retryFor);
    }

    /** Returns a copy of these options with these types of exceptions after which a job is retried. */
    public TaskOptions withRetryFor(Collection<Class<? extends Throwable>> retryFor) {
        return new TaskOptions(
                maxAttempts,
                timeout,
                retryDelay,
                transactional,
                direct,
                noRetryFor,
                Arguments.requireElements("retryFor", retryFor));
    }
}
