package dev.pgworker.statistics;

import java.time.Duration;
import java.util.List;

/**
 * Reads the figures that workers record ({@code pgworker.statistics.enabled}), which reach back 24 hours. Node.js and Rust
 * workers record none. Joins the caller's Spring transaction on the same {@code DataSource}; read-only rights suffice.
 * Thread-safe.
 *
 * @since 0.1.0
 */
public interface JobStatistics {

    /**
     * Returns figures in intervals of equal length, the oldest first; without gaps, but possibly empty where nothing
     * was recorded. An interval begins at a multiple of its length, so that it is the same in the next reading, and the
     * last one is not over. Figures of jobs are kept by the minute: an interval of less than a minute holds those of
     * the minute that begins in it.
     *
     * @param window how far to look back, 1 minute to 24 hours
     * @param points number of intervals, 1 to 1440
     * @throws IllegalArgumentException if an argument is out of its range
     */
    List<StatisticsPoint> series(Duration window, int points);

    /**
     * Returns figures of each task that ran, by name, from the minute on in which the window begins; at most 10,000
     * tasks. A worker that runs more than 200 tasks at a time counts further ones together as {@code (others)}.
     *
     * @param window how far to look back, 1 minute to 24 hours
     * @throws IllegalArgumentException if the window is out of its range
     */
    List<TaskStatistics> tasks(Duration window);
}
