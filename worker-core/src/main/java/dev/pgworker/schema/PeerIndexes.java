package dev.pgworker.schema;

/**
 * What happens to the indexes {@code jobs_main_index} and {@code jobs_no_queue_index}, which only Graphile Workers for
 * Node.js and Rust use to fetch jobs. Each index adds to the cost of adding and claiming a job; without them, those
 * workers read all waiting jobs for each job that they fetch.
 *
 * @since 0.1.0
 */
public enum PeerIndexes {

    /** They are kept where the installation of another Graphile Worker was adopted, and are not created elsewhere. */
    AUTO,

    /** They are built where they are missing. */
    ALWAYS,

    /** They are dropped where they exist. Use this only if no other Graphile Worker uses the schema. */
    NEVER
}
