package dev.pgworker.job;

/**
 * A worker whose jobs are taken from it, because it is dead or taken for dead.
 *
 * @param id its id, as {@code locked_by} has it
 * @param reason why it is taken for dead
 * @param recoveringWorkerId the id of the worker that takes its jobs; {@link #BY_HAND} for a sweep by hand
 * @since 0.1.0
 */
public record DeadWorker(String id, Reason reason, String recoveringWorkerId) {

    /** Stands for the recovering worker where somebody sweeps by hand: {@code "admin"}. */
    public static final String BY_HAND = "admin";

    /**
     * Why a worker is taken for dead.
     *
     * @since 0.1.0
     */
    public enum Reason {

        /** It is registered, and its last heartbeat is older than its threshold. */
        NO_HEARTBEAT,

        /** It is not registered, and a lock of it is older than the threshold. */
        ORPHAN_LOCK,

        /** Its last heartbeat is older than the threshold that was given to a sweep by hand. */
        BY_HAND
    }
}
