package dev.pgworker.internal.store;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/** Knows which locks have been renewed. */
@FunctionalInterface
public interface RenewedLocks {

    /**
     * The time that the lock of a claim has since it was renewed.
     *
     * @param pending the time that it may have instead, because it is being renewed or an answer was lost
     */
    record RowLock(Instant current, @Nullable Instant pending) {

        /** Returns true if the lock has this time, or may have it. */
        public boolean has(Instant lockedAt) {
            return lockedAt.equals(current) || lockedAt.equals(pending);
        }
    }

    /** No lock was renewed. */
    RenewedLocks UNCHANGED = claim -> null;

    /** Returns the lock of a claim; null if it has never been renewed. */
    @Nullable RowLock of(Claim claim);

    default RowLock get(Claim claim) {
        RowLock lock = of(claim);
        return lock == null ? new RowLock(claim.lockedAt(), null) : lock;
    }

    default Instant current(Claim claim) {
        RowLock lock = of(claim);
        return lock == null ? claim.lockedAt() : lock.current();
    }

    default @Nullable Instant pending(Claim claim) {
        RowLock lock = of(claim);
        return lock == null ? null : lock.pending();
    }
}
