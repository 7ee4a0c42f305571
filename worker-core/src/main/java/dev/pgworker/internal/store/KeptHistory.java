package dev.pgworker.internal.store;

import org.jspecify.annotations.Nullable;

import dev.pgworker.history.HistoryLosses;

/**
 * Whether the schema is known to keep a history, as of a short time ago. If that is no longer so nothing is lost but what only this
 * worker could have told of its runs. Thread-safe.
 */
public final class KeptHistory {

    private volatile HistoryStore.State state = new HistoryStore.State(false, null);

    /** Returns true if it is worth telling the history what only this worker knows. */
    public boolean isOn() {
        return state.on();
    }

    /** Returns what the history does not show, or null. */
    public @Nullable HistoryLosses losses() {
        return state.losses();
    }

    /** Notes how things stand. */
    public void set(HistoryStore.State state) {
        this.state = state;
    }
}
