package dev.pgworker.internal.schedule;

import java.time.Duration;
import java.time.Instant;

import org.jspecify.annotations.Nullable;

/** Notices that a clock has been set back. Used by one thread. */
final class ClockWatch {

    /** By how much it goes back without that being worth a word. */
    private static final Duration TOLERANCE = Duration.ofSeconds(5);

    private @Nullable Instant latest;
    private boolean back;

    /** Takes note of a time; returns true if the clock has just been set back, and has not been before since it caught up. */
    boolean isSetBack(Instant now) {
        Instant seen = latest;
        if (seen == null || !now.isBefore(seen)) {
            latest = now;
            back = false;
            return false;
        }
        boolean wasBack = back;
        back |= Duration.between(now, seen).compareTo(TOLERANCE) > 0;
        return back && !wasBack;
    }

    /** Returns the latest time that was seen. */
    @Nullable Instant latest() {
        return latest;
    }
}
