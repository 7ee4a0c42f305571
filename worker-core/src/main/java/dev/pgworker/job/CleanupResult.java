package dev.pgworker.job;

import java.util.Map;
import java.util.Set;

import dev.pgworker.internal.argument.Arguments;

/**
 * The result of a cleanup.
 *
 * @param deleted number of rows deleted by each task that was carried out
 * @param skipped the tasks that would have had to wait too long for other transactions and did nothing; try them again
 *     later
 * @since 0.1.0
 */
public record CleanupResult(Map<CleanupTask, Long> deleted, Set<CleanupTask> skipped) {

    /** Makes defensive copies of both. */
    public CleanupResult {
        deleted = Arguments.requireEntries("deleted", deleted);
        skipped = Set.copyOf(Arguments.requireElements("skipped", skipped));
    }

    /** Returns the number of rows that a task deleted: 0 if it was skipped or not requested. */
    public long deleted(CleanupTask task) {
        return deleted.getOrDefault(Arguments.requireNonNull("task", task), 0L);
    }
}
