package dev.pgworker.internal.store;

import org.jspecify.annotations.Nullable;

import dev.pgworker.history.HistoryLosses;

/**
 * Whether the schema is known to keep a history, as of a short time ago. If that is no longer so nothing is lost but what only this
 * worker could have told of its runs. Thread-safe.
 */
public final class KeptHistory {

    private volatile boolean on;
    private volatile @Nullable HistoryLosses losses;

    /** Returns true if the history takes what only this worker knows. */
    public boolean isOn() {
        return on;
    }

    /** Returns what the history does not show, or null. */
    public @Nullable HistoryLosses losses() {
        return losses;
    }

    /** Notes whether a history is kept. */
    public void set(boolean on) {
        this.on = on;
    }

    /** Notes what the history does not show, or null. */
    public void setLosses(@Nullable HistoryLosses losses) {
        this.losses = losses;
    }
}
