package dev.pgworker.crontab;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * The status of a recurring job. All times are by the database's clock.
 *
 * @param identifier the identifier by which all workers know the item
 * @param item the item of this application's crontab, with the time zone that applies; null if only other applications
 *     have it
 * @param nextExecution the next minute in which the item is due; null while it is paused, if only other applications
 *     have it, or if there is none in the next nine years. Later than the last execution, even where that lies in the
 *     future because the database's clock was set back
 * @param lastExecution the last minute for which the item was executed, or skipped because it was paused; null if there
 *     is none
 * @param knownSince when a worker first registered the item; null if none has registered it yet
 * @param pausedSince since when the item has been paused; null if it is not paused
 * @since 0.1.0
 */
public record CronItemStatus(
        String identifier,
        @Nullable CronItem item,
        @Nullable Instant nextExecution,
        @Nullable Instant lastExecution,
        @Nullable Instant knownSince,
        @Nullable Instant pausedSince) {

    /** Returns true if the item is paused, so that it is not executed until it is resumed. */
    public boolean isPaused() {
        return pausedSince != null;
    }

    /**
     * Returns true if a worker has registered the item. An item of this application's crontab is shown before that, from the
     * crontab itself.
     */
    public boolean isRegistered() {
        return knownSince != null;
    }

    /**
     * Returns true if this application's crontab has the item. Any other item is one that another application has, or that
     * has left its last crontab, see {@link CronAdmin#forget}.
     */
    public boolean isInThisCrontab() {
        return item != null;
    }
}
