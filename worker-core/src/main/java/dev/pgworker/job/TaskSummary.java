package dev.pgworker.job;

import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * A task that jobs or workers use.
 *
 * @param identifier the name of the task
 * @param workerIds the ids of the live workers that report that they serve it, at most 100; Node.js workers do not
 *     report it
 * @param waiting number of its jobs that are due, counted up to 1,000
 * @param failed number of its jobs that have failed permanently, counted up to 1,000
 * @param complete whether there are no more than that; false as well where more than 10,000 jobs are due or have failed,
 *     of which only the first due and the newest failed ones are counted
 * @param pause that it is paused, for PgWorkers; null if it is not, or only {@linkplain PauseTarget#everything everything} is
 * @since 0.1.0
 */
public record TaskSummary(
        String identifier,
        List<String> workerIds,
        long waiting,
        long failed,
        boolean complete,
        @Nullable Pause pause) {

    /** Makes a defensive copy of the list. */
    public TaskSummary {
        workerIds = Arguments.requireList("workerIds", workerIds);
    }
}
