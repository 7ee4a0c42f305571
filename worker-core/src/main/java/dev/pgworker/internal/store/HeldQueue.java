package dev.pgworker.internal.store;

import java.time.Instant;

/** A queue that the database says this worker has locked, and since when. */
public record HeldQueue(String name, Instant lockedAt) {}
