package dev.pgworker.internal.engine.claim;

import dev.pgworker.internal.engine.run.Ownership;

/**
 * What a worker may claim at present.
 *
 * @param tasks of which tasks
 * @param flags without which flags
 * @param ownership whether at all
 */
public record ClaimPermission(ServedTasks tasks, CurrentFlags flags, Ownership ownership) {}
