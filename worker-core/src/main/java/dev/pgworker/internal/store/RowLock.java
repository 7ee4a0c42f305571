package dev.pgworker.internal.store;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * The time that the lock of a claim has since it was renewed.
 *
 * @param pending the time that it may have instead, because it is being renewed or an answer was lost
 */
public record RowLock(Instant current, @Nullable Instant pending) {

    /** Returns true if the lock has this time, or may have it. */
    public boolean has(Instant lockedAt) {
        return lockedAt.equals(current) || lockedAt.equals(pending);
    }
}
