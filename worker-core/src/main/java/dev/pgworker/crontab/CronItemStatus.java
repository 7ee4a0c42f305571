package dev.pgworker.crontab;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * How a recurring job stands. All times are the database's.
 *
 * @param identifier the name by which all workers know the item
 * @param item the item of this application's crontab, with the zone that applies; null if only others have it
 * @param nextExecution the next minute in which it is due; null while it is paused, if only others have it, and if its
 *     pattern matches no day of the next nine years
 * @param lastExecution the last minute for which it was executed, or passed over because it was paused; null for none
 * @param knownSince when a worker first registered it; null if none has yet
 * @param pausedSince since when it is paused; null if it is not
 * @since 0.1.0
 */
public record CronItemStatus(
        String identifier,
        @Nullable CronItem item,
        @Nullable Instant nextExecution,
        @Nullable Instant lastExecution,
        @Nullable Instant knownSince,
        @Nullable Instant pausedSince) {

    /** Returns true if it is not executed until it is resumed. */
    public boolean isPaused() {
        return pausedSince != null;
    }
}
