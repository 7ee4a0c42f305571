package dev.pgworker.job;

/**
 * What {@link JobAdmin#cleanup} removes.
 *
 * @since 0.1.0
 */
public enum CleanupTask {

    /**
     * Task identifiers that no job uses and that no registered worker with a recent heartbeat serves. Node.js workers
     * do not register: those of one of their tasks that is without jobs miss jobs added later until they are restarted.
     */
    GC_TASK_IDENTIFIERS,

    /** Named queues that no job uses and no worker has locked. */
    GC_JOB_QUEUES,

    /** Jobs that have failed permanently and are not locked. */
    DELETE_PERMAFAILED_JOBS
}
