package dev.pgworker.internal.failure;

import java.time.Duration;

import org.jspecify.annotations.Nullable;

/**
 * What has kept a part of the worker from its work for some time although the database answers: a lock of another
 * session, or a right that is missing. Written by one thread at a time, read by any.
 */
public final class Obstacle {

    private final long shortestNanos;

    private volatile @Nullable String reason;

    // Owned by the writing thread.
    private @Nullable Long since;

    /**
     * Creates one that is not there.
     *
     * @param shortest what does not last as long is none
     */
    public Obstacle(Duration shortest) {
        shortestNanos = shortest.toNanos();
    }

    /**
     * Notes that it is there.
     *
     * @param why in words that follow a colon, with the remedy
     * @return whether it is reported for the first time since it has come
     */
    public boolean met(String why) {
        long now = System.nanoTime();
        if (since == null) {
            since = now;
        }
        if (now - since < shortestNanos) {
            return false;
        }
        boolean untold = reason == null;
        reason = why;
        return untold;
    }

    /** Returns for how long it has been there; zero if it is not. For the writing thread. */
    public Duration age() {
        return since == null ? Duration.ZERO : Duration.ofNanos(System.nanoTime() - since);
    }

    /** Notes that it is not there. */
    public void passed() {
        since = null;
        reason = null;
    }

    /** Returns what is in the way, with the remedy; null for nothing. */
    public @Nullable String reason() {
        return reason;
    }
}
