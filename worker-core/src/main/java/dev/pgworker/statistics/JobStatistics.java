package dev.pgworker.statistics;

import java.time.Duration;
import java.util.List;

/**
 * Reads the figures that workers record ({@code worker.statistics.enabled}), which reach back 24 hours. Node.js and Rust
 * workers record none. Joins the caller's Spring transaction on the same {@code DataSource}; read-only rights suffice.
 * Thread-safe.
 *
 * @since 0.1.0
 */
public interface JobStatistics {

    /**
     * Returns figures in intervals of equal length, the oldest first; without gaps, but possibly empty where nothing
     * was recorded.
     *
     * @param window how far to look back, 1 minute to 24 hours
     * @param points number of intervals, 1 to 1440
     */
    List<StatisticsPoint> series(Duration window, int points);

    /**
     * Returns figures of each task that ran, by name.
     *
     * @param window how far to look back, 1 minute to 24 hours
     */
    List<TaskStatistics> tasks(Duration window);
}
