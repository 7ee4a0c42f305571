package dev.pgworker.event;

/**
 * The outcome of the recovery of a job whose worker died.
 *
 * @since 0.1.0
 */
public enum RecoveryOutcome {

    /** The job runs again after the recovery delay; the attempt does not count. */
    RETURNED,

    /** The job runs again at a time chosen by a {@code JobRecoveryHandler}. */
    RESCHEDULED,

    /** The attempt counts, and the job runs again after the usual back-off. */
    FAILED,

    /** The attempt counts and was the last one, so the job has failed permanently. */
    FAILED_PERMANENTLY,

    /** The job was superseded under its key, or removed, while it ran, and does not run again. */
    SUPERSEDED,

    /** The job was cancelled while it ran, and has been deleted. */
    CANCELLED
}
