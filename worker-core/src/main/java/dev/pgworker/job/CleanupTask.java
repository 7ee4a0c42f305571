package dev.pgworker.job;

/**
 * What {@link WorkerOperations#cleanup} removes.
 *
 * @since 0.1.0
 */
public enum CleanupTask {

    /**
     * Task identifiers that no job uses and that no registered worker with a recent heartbeat serves. Node.js workers
     * do not register: if one of their tasks has no jobs, it is removed, and these workers miss jobs of this task that
     * are added later, until they are restarted.
     */
    GC_TASK_IDENTIFIERS,

    /** Named queues that no job uses and that no worker has locked. */
    GC_JOB_QUEUES,

    /** Jobs that have failed permanently and are not locked. */
    DELETE_PERMAFAILED_JOBS,

    /**
     * Schedules whose end is past and of which nothing is left to be done. Those that applications declare stay, because they
     * would be back with the next start.
     */
    DELETE_ENDED_SCHEDULES
}
