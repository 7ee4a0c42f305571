package dev.pgworker.history;

import java.util.List;

/**
 * Reads what became of jobs, as far as the schema keeps a history ({@code pgworker.history.enabled}). Joins the caller's
 * Spring transaction on the same {@code DataSource}; the right to read {@code
 * pgworker_history}, {@code pgworker_history_settings}, {@code pgworker_history_sizes} and {@code pgworker_history_losses} suffices, also on
 * a replica.
 * Thread-safe. All methods throw a {@link org.springframework.dao.DataAccessException} if the database cannot be used.
 *
 * @since 0.1.0
 */
public interface JobHistory {

    /**
     * Returns whether a history is kept, and how large it is. Takes milliseconds, whatever its size. While its table is
     * locked exclusively, the numbers are those of the last vacuum, and the oldest entry is null.
     */
    HistoryStatus status();

    /**
     * Lists entries, the latest first. Reads a bounded number of entries, and a search a bounded number of bytes; where filters match
     * few of them, a page may be empty and yet have a next one. A page also ends before its size when its texts come to 8 million
     * characters.
     *
     * @throws IllegalArgumentException if {@link HistoryQuery#after} is not the next of a page
     */
    HistoryPage list(HistoryQuery query);

    /** As {@link #of(long, int)}, with up to 100,000 characters of each payload, result and error. */
    default List<HistoryEntry> of(long jobId) {
        return of(jobId, HistoryQuery.ALL.payloadLimit());
    }

    /**
     * Returns the ended runs of one job, the latest first; at most 1000. Of those beyond the first 8 million characters, payload, result
     * and error are {@code …}.
     *
     * @param payloadLimit as in {@link HistoryQuery}
     * @throws IllegalArgumentException if the limit is out of range
     */
    List<HistoryEntry> of(long jobId, int payloadLimit);
}
