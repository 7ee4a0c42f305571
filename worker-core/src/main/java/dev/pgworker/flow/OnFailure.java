package dev.pgworker.flow;

/**
 * What becomes of a job that waits for others if one of those fails permanently, or is removed or cancelled.
 *
 * @since 0.1.0
 */
public enum OnFailure {

    /**
     * It waits until the failed job has succeeded in a retry or is completed by hand, or until you run the waiting one. A job that was
     * removed or cancelled cannot be retried.
     */
    WAIT,

    /** It fails permanently as well, as soon as the first of them has. Its own successors follow their own choice. */
    FAIL,

    /** It is removed as soon as the first of them has failed. */
    REMOVE,

    /** It runs when all of them have ended, one way or the other. */
    RUN,

    /** It runs only if one of them fails, as soon as the first of them has. If all of them succeed, it is removed. */
    INSTEAD
}
