package dev.pgworker.history;

import java.time.Duration;
import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * Whether a schema keeps a history, and how large it is.
 *
 * @param enabled whether ends of jobs are recorded
 * @param keepFor how long entries are kept at least, unless there are too many
 * @param keepMost the number of entries beyond which the oldest are dropped early
 * @param entries number of entries, estimated
 * @param bytes the size on disk, with indexes
 * @param oldest when the oldest entry ended; null if there is none
 * @param losses what it does not show; null if nothing is missing
 * @since 0.1.0
 */
public record HistoryStatus(
        boolean enabled,
        Duration keepFor,
        long keepMost,
        long entries,
        long bytes,
        @Nullable Instant oldest,
        @Nullable HistoryLosses losses) {}
