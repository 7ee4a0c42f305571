package dev.pgworker.task;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.random.RandomGenerator;

import org.jspecify.annotations.Nullable;
import org.springframework.core.retry.RetryPolicy;
import org.springframework.util.backoff.BackOff;
import org.springframework.util.backoff.BackOffExecution;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.job.Job;

/**
 * Determines how long a job waits after a failed attempt. Called on the handler's thread. Without one, or if it throws an exception, the delay is {@code exp(min(attempts, 10))} seconds, as in every
 * Graphile Worker, up to 10 % shorter at random.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface RetryDelay {

    /** The delay that stands for no further attempt: the job fails permanently. */
    Duration NEVER = Duration.ofSeconds(Long.MAX_VALUE);

    /**
     * Returns the delay before the job runs again.
     *
     * @param job the job as it was claimed; {@code attempts} includes the attempt that failed
     * @param error the exception that the handler threw
     * @return the delay, zero or more, or {@link #NEVER}
     */
    Duration delay(Job job, Throwable error);

    /** Returns a fixed delay, up to 10 % shorter at random. */
    static RetryDelay fixed(Duration delay) {
        Arguments.requireNotNegative("delay", delay);
        return exact(delay).withJitter(0.1);
    }

    private static RetryDelay exact(Duration delay) {
        return (job, error) -> delay;
    }

    /**
     * Returns a delay that is {@code first} after the first attempt and {@code factor} times as long after each further one. It is
     * up to 10 % shorter at random, and never longer than {@code longest}.
     */
    static RetryDelay exponential(Duration first, double factor, Duration longest) {
        Arguments.requireNotNegative("first", first);
        Arguments.requireNotNegative("longest", longest);
        if (!(factor >= 1)) {
            throw new IllegalArgumentException("factor must be at least 1, but is " + factor);
        }
        double limit = longest.toNanos();
        RetryDelay exact = (job, error) ->
                Duration.ofNanos((long) Math.min(limit, first.toNanos() * Math.pow(factor, job.attempts() - 1)));
        return exact.withJitter(0.1);
    }

    /**
     * Returns the delays of a {@link BackOff} of Spring, as it is: {@link #NEVER} where it stops. It is started for each delay and asked
     * once for each attempt that the job has made.
     */
    static RetryDelay of(BackOff backOff) {
        Arguments.requireNonNull("backOff", backOff);
        return (job, error) -> {
            BackOffExecution execution = backOff.start();
            long millis = 0;
            for (int attempt = 0; attempt < job.attempts() && millis != BackOffExecution.STOP; attempt++) {
                millis = execution.nextBackOff();
            }
            return millis == BackOffExecution.STOP ? NEVER : Duration.ofMillis(millis);
        };
    }

    /**
     * Returns the delays of a {@link RetryPolicy} of Spring: those of its back-off, and {@link #NEVER} for an exception that it does not
     * retry. Its timeout has no meaning here.
     */
    static RetryDelay of(RetryPolicy policy) {
        RetryDelay delays = of(Arguments.requireNonNull("policy", policy).getBackOff());
        return (job, error) -> policy.shouldRetry(error) ? delays.delay(job, error) : NEVER;
    }

    /**
     * Returns the same delays, spread at random, so that jobs that failed together are not retried together.
     *
     * @param fraction how much shorter a delay becomes at most, 0 to 1; 0.1 for 10 %
     */
    default RetryDelay withJitter(double fraction) {
        return withJitter(fraction, null);
    }

    /**
     * Same as {@link #withJitter(double)}, with random numbers of the caller's.
     *
     * @param random called on the handlers' threads; null for those of the thread
     */
    default RetryDelay withJitter(double fraction, @Nullable RandomGenerator random) {
        if (!(fraction >= 0 && fraction <= 1)) {
            throw new IllegalArgumentException("fraction must be between 0 and 1, but is " + fraction);
        }
        return (job, error) -> {
            Duration delay = delay(job, error);
            // Longer ones, NEVER among them, cannot be spread in nanoseconds.
            if (delay.compareTo(Duration.ofDays(36_500)) > 0) {
                return delay;
            }
            RandomGenerator numbers = random == null ? ThreadLocalRandom.current() : random;
            return Duration.ofNanos((long) (delay.toNanos() * (1 - fraction * numbers.nextDouble())));
        };
    }
}
