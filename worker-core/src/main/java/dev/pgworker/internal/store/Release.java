package dev.pgworker.internal.store;

import java.time.Duration;
import java.time.Instant;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.SqlRows;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.job.Job;

/**
 * A job to give up.
 *
 * @param claim by which it is held
 * @param key the key that the job had when it was claimed
 * @param attempts the attempts that it had when it was claimed; null to take those in the database
 * @param action what becomes of it
 * @param when when it may run again; null for the usual back-off ({@code RETRY}) or at once ({@code BACK})
 * @param error what to write to {@code last_error}; null to leave it
 * @param payload what to write to {@code payload}; null to leave it
 */
public record Release(
        Claim claim,
        @Nullable String key,
        @Nullable Integer attempts,
        Action action,
        @Nullable RetryTime when,
        @Nullable String error,
        @Nullable String payload) {

    /** What becomes of a job that did not succeed. */
    public enum Action {
        /** It runs again after a delay, and the attempt counts. */
        RETRY("retry"),
        /** It has failed permanently. */
        FAIL("fail"),
        /** It runs again, and the attempt does not count. */
        BACK("back");

        final String sqlName;

        Action(String sqlName) {
            this.sqlName = sqlName;
        }
    }

    /** Gives a job up as it was claimed. */
    public static Release of(
            Job job, Action action, @Nullable RetryTime when, @Nullable String error, @Nullable String payload) {
        return new Release(Claim.of(job), job.key(), job.attempts(), action, when, error, payload);
    }

    /** Returns this release with another error. */
    public Release withError(@Nullable String other) {
        return new Release(claim, key, attempts, action, when, other, payload);
    }

    /** Returns the value of the type that the statement reads. */
    String row(RenewedLocks locks, @Nullable RunRecord run) {
        Duration delay = when == null ? null : when.delay();
        Instant at = when == null ? null : when.at();
        return SqlRows.row(
                claim.jobId(),
                Timestamps.text(locks.current(claim)),
                action.sqlName,
                delay == null ? null : delay.toSeconds() + delay.toNanosPart() / 1e9,
                Timestamps.text(at),
                error,
                key,
                attempts,
                payload,
                run == null ? null : run.micros(),
                run == null ? null : run.result(),
                run == null ? null : run.traceId());
    }
}
