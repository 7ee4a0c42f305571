package dev.pgworker.event;

/**
 * Why executions of a schedule do not take place.
 *
 * @since 0.1.0
 */
public enum ScheduleSkipReason {

    /** The job of the previous execution still waits or runs, and executions of the schedule do not overlap. */
    OVERLAP,

    /** They were missed, and the schedule does not catch up on them. */
    MISFIRE,

    /** An interceptor wanted no job. */
    REJECTED
}
