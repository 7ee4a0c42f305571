package dev.pgworker.job;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * What a cancellation has made of a job.
 *
 * @param jobId the id of the job
 * @param state what has become of the job so far
 * @param requestedAt when the job, which was running, was first cancelled, by the database's clock; null for a job that did not run
 * @param requestedBy in whose name ({@link JobChanges#actingAs}) it was cancelled; null if no name was given, or if it
 *     did not run
 * @param workerId the worker that held the job, as {@code locked_by} has it; null for a job that did not run
 * @since 0.1.0
 */
public record Cancellation(
        long jobId,
        State state,
        @Nullable Instant requestedAt,
        @Nullable String requestedBy,
        @Nullable String workerId) {

    /**
     * What has become of a job that was to be cancelled.
     *
     * @since 0.1.0
     */
    public enum State {

        /** The job was waiting, or had failed permanently, and has been deleted. It never runs again. */
        REMOVED,

        /**
         * The job is running in a PgWorker worker, which is notified as soon as the cancellation is committed. It is
         * not retried. Ends as {@link #CANCELLED} or {@link #COMPLETED}; if the worker has died, as {@link #CANCELLED}
         * when it is found dead.
         */
        REQUESTED,

        /**
         * The job is running in a worker of Node.js or Rust, or in one that is not registered, which cannot be
         * notified. It is not retried. Ends as {@link #CANCELLED} or {@link #COMPLETED}.
         */
        MARKED,

        /** The job was running, its run has ended without success, and it has been deleted. It never runs again. */
        CANCELLED,

        /** The job was running and succeeded all the same, with everything that its handler does. */
        COMPLETED,

        /** There is no such job: it had ended before, or has never existed. */
        GONE;

        /** Returns true while the job is still running. */
        public boolean isOpen() {
            return this == REQUESTED || this == MARKED;
        }
    }
}
