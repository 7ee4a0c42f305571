package dev.pgworker.job;

import java.util.List;

/**
 * A task that jobs or workers use.
 *
 * @param identifier the name of the task
 * @param workerIds the ids of the live workers that say they serve it, at most 100; Node.js workers do not say
 * @param waiting number of its jobs that are due, counted up to 1,000
 * @param failed number of its jobs that have failed permanently, counted up to 1,000
 * @since 0.1.0
 */
public record TaskSummary(String identifier, List<String> workerIds, long waiting, long failed) {

    /** Makes a defensive copy of the list. */
    public TaskSummary {
        workerIds = List.copyOf(workerIds);
    }
}
