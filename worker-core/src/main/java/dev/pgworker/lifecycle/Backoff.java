package dev.pgworker.lifecycle;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Growing, jittered pauses between attempts: 50 to 100 ms first, doubled each time up to 2.5 to 5 s. Used by one
 * thread.
 */
public final class Backoff {

    private static final long FIRST_MILLIS = 100;
    private static final long LONGEST_MILLIS = 5_000;

    private long millis = FIRST_MILLIS;

    /** Returns the next pause. */
    public Duration next() {
        long half = millis / 2;
        millis = Math.min(2 * millis, LONGEST_MILLIS);
        return Duration.ofMillis(half + ThreadLocalRandom.current().nextLong(half + 1));
    }

    /** Begins with the shortest pause again. */
    public void reset() {
        millis = FIRST_MILLIS;
    }
}
