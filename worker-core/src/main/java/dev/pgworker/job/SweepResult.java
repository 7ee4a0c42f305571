package dev.pgworker.job;

import java.util.List;

import dev.pgworker.internal.argument.Arguments;

/**
 * The result of a sweep.
 *
 * @param swept false if another sweep was running, so that nothing was done
 * @param workerIds the ids of the dead workers, both registered ones and those that only hold locks
 * @param recoveredJobs number of jobs that were recovered from them; 0 in a dry run
 * @since 0.1.0
 */
public record SweepResult(boolean swept, List<String> workerIds, int recoveredJobs) {

    /** Makes a defensive copy of the list. */
    public SweepResult {
        workerIds = Arguments.requireList("workerIds", workerIds);
    }
}
