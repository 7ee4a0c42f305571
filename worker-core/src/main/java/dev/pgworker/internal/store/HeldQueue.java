package dev.pgworker.internal.store;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * A queue that this worker has locked.
 *
 * @param lockedAt since when; null if the lock may have been renewed
 */
public record HeldQueue(int id, String name, @Nullable Instant lockedAt) {}
