package dev.pgworker.job;

import java.util.Map;
import java.util.Set;

import dev.pgworker.internal.argument.Arguments;

/**
 * What a cleanup would remove.
 *
 * @param counts number of rows that each task would delete, counted up to the limit
 * @param limit where counting ends
 * @param atMost the tasks that may delete fewer rows than that, because not all jobs were read that may use them
 * @since 0.1.0
 */
public record CleanupPreview(Map<CleanupTask, Long> counts, long limit, Set<CleanupTask> atMost) {

    /** Makes defensive copies. */
    public CleanupPreview {
        counts = Arguments.requireEntries("counts", counts);
        atMost = Set.copyOf(Arguments.requireElements("atMost", atMost));
    }
}
