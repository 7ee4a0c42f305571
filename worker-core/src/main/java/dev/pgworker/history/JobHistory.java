package dev.pgworker.history;

import java.util.List;

/**
 * Reads what became of jobs, as far as the schema keeps a history ({@code worker.history.enabled}). Joins the caller's
 * Spring transaction on the same {@code DataSource}; the right to read {@code
 * pgworker_history}, {@code pgworker_history_settings} and {@code pgworker_history_sizes} suffices, also on a replica.
 * Thread-safe. All methods throw a {@link org.springframework.dao.DataAccessException} if the database cannot be used.
 *
 * @since 0.1.0
 */
public interface JobHistory {

    /** Returns whether a history is kept, and how large it is. Takes milliseconds, whatever its size. */
    HistoryStatus status();

    /**
     * Lists entries, the latest first. Reads a bounded number of entries; where filters match few of them, a page may
     * be empty and yet have a next one.
     *
     * @throws IllegalArgumentException if {@link HistoryQuery#after} is not the next of a page
     */
    HistoryPage list(HistoryQuery query);

    /** Returns the ended runs of one job, the latest first; at most 1000. */
    List<HistoryEntry> of(long jobId);
}
