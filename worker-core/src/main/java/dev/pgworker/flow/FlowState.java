package dev.pgworker.flow;

/**
 * How far a job of a flow has come.
 *
 * @since 0.1.0
 */
public enum FlowState {

    /** It waits for other jobs. */
    WAITING,

    /** It is not due yet. */
    SCHEDULED,

    /** It may run now. */
    READY,

    /** A worker runs it. */
    RUNNING,

    /** It has succeeded. */
    SUCCEEDED,

    /** It has failed permanently, and has not been retried. */
    FAILED,

    /** It was removed, or deleted without having run. */
    REMOVED,

    /** It was cancelled while it ran. */
    CANCELLED,

    /** It is gone, and its end could not be recorded. Counts as not having succeeded. */
    UNKNOWN
}
