package dev.pgworker.flow;

/**
 * What becomes of a job that waits for others if one of those fails permanently, or is removed or cancelled.
 *
 * @since 0.1.0
 */
public enum OnFailure {

    /** It continues to wait until you have retried the failed job and it has succeeded, or until you run the waiting one. */
    WAIT,

    /** It fails permanently as well, as soon as the first of them has, and so do in turn those that wait for it. */
    FAIL,

    /** It is removed as soon as the first of them has failed. */
    REMOVE,

    /** It runs when all of them have ended, one way or the other. */
    RUN,

    /** It runs only then, instead of others: as soon as the first of them has failed. If all of them succeed, it is removed. */
    INSTEAD
}
