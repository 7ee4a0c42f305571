package dev.pgworker.job;

/**
 * Watches a change of many jobs, and may stop it.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface BulkProgress {

    /**
     * Called after each chunk, on the calling thread, outside a transaction.
     *
     * @param done number of jobs that have been looked at
     * @param changed number of jobs that have been changed
     * @param total number of jobs of the selection
     * @return false to stop; what has been changed stays changed
     */
    boolean chunkDone(int done, int changed, int total);
}
