package dev.pgworker.internal.engine.run;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.store.Claim;

/**
 * A handler that runs.
 *
 * @param nanos for how long it has been running
 * @param progress how far it has come; null if it has not said so
 */
public record LongRun(Claim claim, long nanos, @Nullable Progress progress) {}
