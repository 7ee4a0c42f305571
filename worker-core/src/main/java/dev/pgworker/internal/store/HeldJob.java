package dev.pgworker.internal.store;

import org.jspecify.annotations.Nullable;

/** A job that the database says this worker holds. */
public record HeldJob(Claim claim, @Nullable String key) {}
