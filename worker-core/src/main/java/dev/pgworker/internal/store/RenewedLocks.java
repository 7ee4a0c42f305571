package dev.pgworker.internal.store;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/** Knows which locks have been renewed. */
@FunctionalInterface
public interface RenewedLocks {

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
