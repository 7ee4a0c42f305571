package dev.pgworker.job;

/**
 * The order of a list of jobs.
 *
 * @since 0.1.0
 */
public enum JobSort {

    /** By descending id. */
    NEWEST,

    /** By ascending id. */
    OLDEST,

    /** By run time, the next first. */
    RUN_AT,

    /** By the time of the last change, the latest first. */
    UPDATED,

    /** By priority, run time and id, as workers claim jobs. */
    PRIORITY,

    /** By the number of attempts, the most first. */
    ATTEMPTS
}
