package dev.pgworker.internal.failure;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/** Growing, jittered pauses between attempts: doubled each time, and each between half of that and all. Used by one thread. */
public final class Backoff {

    private final long firstMillis;
    private final long longestMillis;
    private long millis;

    /** Creates pauses of up to 100 ms first and 5 s at last. */
    public Backoff() {
        this(Duration.ofMillis(100), Duration.ofSeconds(5));
    }

    /**
     * Creates pauses.
     *
     * @param first the longest that the first may be, in whole milliseconds
     * @param longest the longest that any may be
     */
    public Backoff(Duration first, Duration longest) {
        firstMillis = first.toMillis();
        longestMillis = longest.toMillis();
        millis = firstMillis;
    }

    /** Returns the next pause. */
    public Duration next() {
        long half = millis / 2;
        millis = Math.min(2 * millis, longestMillis);
        return Duration.ofMillis(half + ThreadLocalRandom.current().nextLong(half + 1));
    }

    /** Begins with the shortest pause again. */
    public void reset() {
        millis = firstMillis;
    }
}
