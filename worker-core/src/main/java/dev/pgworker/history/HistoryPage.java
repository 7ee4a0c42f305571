package dev.pgworker.history;

import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * A page of the history.
 *
 * @param entries the entries, the latest first
 * @param next the value to pass as {@link HistoryQuery#after()} for the next page; null if this is the last page
 * @param limited whether the search ended before the page was full, because it had read as many entries as one call
 *     may; the next page continues from there
 * @since 0.1.0
 */
public record HistoryPage(
        List<HistoryEntry> entries, @Nullable String next, boolean limited) {

    /** Makes a defensive copy of the list. */
    public HistoryPage {
        entries = Arguments.requireList("entries", entries);
    }
}
