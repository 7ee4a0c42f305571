package dev.pgworker.task;

import java.time.Duration;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.job.Job;

/**
 * Determines how long a job waits after a failed attempt. Called on the handler's thread. Without a policy, or if the
 * policy throws an exception, the delay is {@code exp(min(attempts, 10))} seconds, as in every Graphile Worker.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface RetryPolicy {

    /**
     * Returns the delay before the job runs again.
     *
     * @param job the job as it was claimed; {@code attempts} includes the attempt that failed
     * @param error the exception that the handler threw
     * @return the delay, zero or more
     */
    Duration delay(Job job, Throwable error);

    /** Returns a policy with a fixed delay. */
    static RetryPolicy fixed(Duration delay) {
        Arguments.requireNotNegative("delay", delay);
        return (job, error) -> delay;
    }

    /**
     * Returns a policy whose delay is {@code first} after the first attempt and {@code factor} times as long after each
     * further one, but never longer than {@code longest}.
     */
    static RetryPolicy exponential(Duration first, double factor, Duration longest) {
        Arguments.requireNotNegative("first", first);
        Arguments.requireNotNegative("longest", longest);
        if (!(factor >= 1)) {
            throw new IllegalArgumentException("factor must be at least 1, but is " + factor);
        }
        double limit = longest.toNanos();
        return (job, error) ->
                Duration.ofNanos((long) Math.min(limit, first.toNanos() * Math.pow(factor, job.attempts() - 1)));
    }
}
