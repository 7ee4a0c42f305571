package dev.pgworker.history;

/**
 * How a run of a job, or the job itself, ended.
 *
 * @since 0.1.0
 */
public enum HistoryOutcome {

    /** The job succeeded, or was completed by hand, and is gone. */
    SUCCEEDED,

    /** The attempt failed, and the job has attempts left. */
    RETRIED,

    /** The job failed permanently. */
    FAILED,

    /** The job was removed before it ran, or while it ran. */
    REMOVED,

    /** The job was cancelled while it ran, and did not succeed. */
    CANCELLED,

    /** The worker died; the job was given back. */
    RECOVERED,

    /** Something else, which a later version of PgWorker has recorded. */
    OTHER
}
