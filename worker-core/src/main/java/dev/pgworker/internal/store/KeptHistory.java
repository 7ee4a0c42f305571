package dev.pgworker.internal.store;

/**
 * Whether the schema is known to keep a history, as of a short time ago. If that is no longer so nothing is lost but what only this
 * worker could have told of its runs. Thread-safe.
 */
public final class KeptHistory {

    private volatile boolean on;

    /** Returns true if it is worth telling the history what only this worker knows. */
    public boolean isOn() {
        return on;
    }

    /** Notes whether a history is kept. */
    public void set(boolean on) {
        this.on = on;
    }
}
