package dev.pgworker.job;

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

    /** A worker holds the job. */
    RUNNING,

    /** The job has used up its attempts and stays until it is rescheduled, removed or cleaned up. */
    FAILED
}
