package dev.pgworker.job;

import java.util.Map;

/**
 * What a cleanup would remove.
 *
 * @param counts number of rows that each task would delete, counted up to the limit
 * @param limit where counting ends
 * @since 0.1.0
 */
public record CleanupPreview(Map<CleanupTask, Long> counts, long limit) {

    /** Makes a defensive copy of the map. */
    public CleanupPreview {
        counts = Map.copyOf(counts);
    }
}
