package dev.pgworker.internal.store;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * A claim as its row has it.
 *
 * @param lockedAt the time of the lock, which may have been renewed
 * @param address where the row lay; null if that is not known
 */
public record HeldClaim(
        long jobId, Instant lockedAt, @Nullable String address) {}
