package dev.pgworker.job;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * That something is paused.
 *
 * @param target what
 * @param since since when, by the database's clock
 * @param by who has paused it; null if no name was given
 * @param reason why; null if no reason was given
 * @since 0.1.0
 */
public record Pause(
        PauseTarget target,
        Instant since,
        @Nullable String by,
        @Nullable String reason) {

    /** Returns the pause in words, such as {@code task "report" paused by ann since 2026-01-01T00:00:00Z: the partner is down}. */
    public String text() {
        return target + " paused" + (by == null ? "" : " by " + by) + " since " + since
                + (reason == null ? "" : ": " + reason);
    }
}
