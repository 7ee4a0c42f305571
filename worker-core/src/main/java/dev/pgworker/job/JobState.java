package dev.pgworker.job;

/**
 * Where a job stands at the moment of a query. Every job is in exactly one state.
 *
 * @since 0.1.0
 */
public enum JobState {

    /** It may be claimed now; another job of its queue may still be running. */
    READY,

    /** Its time lies in the future, and no attempt counts yet. */
    SCHEDULED,

    /** Its time lies in the future, after at least one attempt. */
    RETRYING,

    /** A worker holds it. */
    RUNNING,

    /** It has used up its attempts and stays until it is rescheduled, removed or cleaned up. */
    FAILED
}
