package dev.pgworker.job;

import java.util.Map;
import java.util.Set;

/**
 * What a cleanup did.
 *
 * @param deleted how many rows each task deleted, for the tasks that were done
 * @param skipped the tasks that would have had to wait for others too long and did nothing; try them again later
 * @since 0.1.0
 */
public record CleanupResult(Map<CleanupTask, Long> deleted, Set<CleanupTask> skipped) {

    /** Copies both. */
    public CleanupResult {
        deleted = Map.copyOf(deleted);
        skipped = Set.copyOf(skipped);
    }

    /** Returns how many rows a task deleted: 0 if it was skipped or not asked for. */
    public long deleted(CleanupTask task) {
        return deleted.getOrDefault(task, 0L);
    }
}
