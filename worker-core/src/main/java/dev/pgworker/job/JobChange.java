package dev.pgworker.job;

import tools.jackson.databind.JsonNode;

/**
 * What is done to each job of a selection.
 *
 * @since 0.1.0
 */
public sealed interface JobChange {

    /**
     * As {@link JobChanges#runNow}.
     *
     * @since 0.1.0
     */
    record RunNow() implements JobChange {}

    /**
     * As {@link JobChanges#retryWith}.
     *
     * @param payload the payload of the jobs
     * @since 0.1.0
     */
    record RetryWith(JsonNode payload) implements JobChange {}

    /**
     * As {@link JobChanges#complete}.
     *
     * @since 0.1.0
     */
    record Complete() implements JobChange {}

    /**
     * As {@link JobChanges#permanentlyFail}.
     *
     * @param reason the last error of the jobs
     * @since 0.1.0
     */
    record Fail(String reason) implements JobChange {}

    /**
     * As {@link JobChanges#remove(java.util.Collection)}.
     *
     * @since 0.1.0
     */
    record Remove() implements JobChange {}

    /**
     * As {@link JobChanges#cancel(java.util.Collection)}. Jobs count as changed when they have been deleted or their cancellation is
     * requested, not when they had ended before.
     *
     * @since 0.1.0
     */
    record Cancel() implements JobChange {}

    /**
     * As {@link JobChanges#reschedule}.
     *
     * @param rescheduling the changes
     * @since 0.1.0
     */
    record Reschedule(Rescheduling rescheduling) implements JobChange {}
}
