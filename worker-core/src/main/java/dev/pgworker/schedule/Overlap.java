package dev.pgworker.schedule;

/**
 * What happens to an execution of a schedule while the job of the previous one still waits or runs. A job that has failed
 * permanently has ended.
 *
 * @since 0.1.0
 */
public enum Overlap {

    /** Its job is added all the same; both may run at the same time. */
    ALLOW,

    /** Its job is added and runs after the previous one: the jobs form a queue, by default one of the schedule's name. */
    QUEUE,

    /** It does not take place. */
    SKIP
}
