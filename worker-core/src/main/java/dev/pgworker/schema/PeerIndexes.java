package dev.pgworker.schema;

/**
 * What happens to the indexes that only Graphile Workers for Node.js and Rust fetch with, {@code jobs_main_index} and
 * {@code jobs_no_queue_index}. Each makes adding and claiming a job dearer; without them those workers read all waiting jobs
 * for each that they fetch.
 *
 * @since 0.1.0
 */
public enum PeerIndexes {

    /** They stay where the installation of another Graphile Worker was adopted, and are not made elsewhere. */
    AUTO,

    /** They are built where they are missing. */
    ALWAYS,

    /** They are dropped where they exist: no other Graphile Worker works here. */
    NEVER
}
