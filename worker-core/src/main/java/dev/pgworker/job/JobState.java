package dev.pgworker.job;

import java.time.Instant;

import dev.pgworker.internal.argument.Arguments;

/**
 * The state of a job at the time of a query. Every job is in exactly one state.
 *
 * @since 0.1.0
 */
public enum JobState {

    /** The job can be claimed now; another job of its queue may still be running. */
    READY,

    /** The job is due in the future and has no counted attempt yet. */
    SCHEDULED,

    /** The job is due in the future, after at least one attempt. */
    RETRYING,

    /** The job is due and waits for a limit, such as that of the jobs that run at the same time. */
    LIMITED,

    /** A worker holds the job. */
    RUNNING,

    /** The job has used up its attempts and stays until it is rescheduled, removed or cleaned up. */
    FAILED;

    /**
     * Returns the state that a job had when it was read. Whether a job waits for its time depends on the clock: the
     * database's, if the job was listed by a state.
     *
     * @param now the time by which jobs are due
     */
    public static JobState of(Job job, Instant now) {
        if (Arguments.requireNonNull("job", job).lockedAt() != null) {
            return RUNNING;
        }
        if (job.attempts() >= job.maxAttempts()) {
            return FAILED;
        }
        if (job.runAt().isAfter(Arguments.requireNonNull("now", now))) {
            return job.attempts() == 0 ? SCHEDULED : RETRYING;
        }
        return job.limited() ? LIMITED : READY;
    }
}
