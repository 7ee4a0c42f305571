package dev.pgworker.job;

import java.util.List;

/**
 * What a sweep has found and done.
 *
 * @param swept false if another sweep was at work, so that nothing was done
 * @param workerIds the dead workers, registered ones and those that only hold locks
 * @param recoveredJobs how many jobs were taken from them; 0 in a dry run
 * @since 0.1.0
 */
public record SweepResult(boolean swept, List<String> workerIds, int recoveredJobs) {

    /** Copies the list. */
    public SweepResult {
        workerIds = List.copyOf(workerIds);
    }
}
