package dev.pgworker.job;

/**
 * A worker whose jobs are recovered because it is dead or considered dead.
 *
 * @param id its id, as {@code locked_by} has it
 * @param reason why it is considered dead
 * @param recoveringWorkerId the id of the worker that recovers its jobs; {@link #BY_HAND} for a manual sweep
 * @since 0.1.0
 */
public record DeadWorker(String id, Reason reason, String recoveringWorkerId) {

    /** Takes the place of the recovering worker's id in a manual sweep: {@code "admin"}. */
    public static final String BY_HAND = "admin";

    /**
     * Why a worker is considered dead.
     *
     * @since 0.1.0
     */
    public enum Reason {

        /** The worker is registered, and its last heartbeat is older than its threshold. */
        NO_HEARTBEAT,

        /** The worker is not registered, and one of its locks is older than the threshold. */
        ORPHAN_LOCK,

        /** The worker's last heartbeat is older than the threshold that was given to a manual sweep. */
        BY_HAND
    }
}
