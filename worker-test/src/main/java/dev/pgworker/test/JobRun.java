package dev.pgworker.test;

import java.time.Instant;

import org.assertj.core.api.AssertProvider;
import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;

/**
 * One attempt of a job and how it ended. {@code assertThat(run)} gives a {@link JobRunAssert}.
 *
 * @param job the job as it was claimed, this attempt counted
 * @param outcome how the attempt ended, as the database has it
 * @param error what the handler threw, or null; a batch of which some items failed has an error, too
 * @param next the job as it stood in the database when the call returned that gave this run; null if it is gone, as a
 *     completed one is, and for all runs of a job but its last
 * @since 0.1.0
 */
public record JobRun(
        Job job,
        Outcome outcome,
        @Nullable Throwable error,
        @Nullable Job next) implements AssertProvider<JobRunAssert> {

    /**
     * How an attempt ended.
     *
     * @since 0.1.0
     */
    public enum Outcome {

        /** The handler returned, and the job is deleted. */
        COMPLETED,

        /** The attempt failed, and the job runs again at the {@link JobRun#nextRunAt()}. */
        RETRYING,

        /** The attempt failed, and it was the last: the job does not run again. */
        FAILED,

        /** The handler put the job off until the {@link JobRun#nextRunAt()}, and the attempt does not count. */
        SNOOZED,

        /** The worker stopped, and gave the job back without counting the attempt. */
        RETURNED,

        /** The attempt did not succeed, and its job had been replaced or removed by its key meanwhile. */
        SUPERSEDED,

        /** The job was cancelled before the attempt succeeded, and is deleted. */
        CANCELLED,

        /** The job was no longer this worker's when the attempt ended, so that nothing was written. */
        LOST
    }

    /** Returns when the job runs again; null if it does not, or has run again already. */
    public @Nullable Instant nextRunAt() {
        boolean again = outcome == Outcome.RETRYING || outcome == Outcome.SNOOZED || outcome == Outcome.RETURNED;
        return next == null || !again ? null : next.runAt();
    }

    /** Returns the assertions on this run; called by AssertJ. */
    @Override
    public JobRunAssert assertThat() {
        return new JobRunAssert(this);
    }

    JobRun withNext(@Nullable Job job) {
        return new JobRun(this.job, outcome, error, job);
    }

    /** Returns what messages say of this run: job, outcome and error, and never the payload. */
    @Override
    public String toString() {
        Instant again = nextRunAt();
        return job + " " + outcome + (again == null ? "" : ", runs again at " + again)
                + (error == null ? "" : ": " + error);
    }
}
