package dev.pgworker.internal.store;

import java.util.Map;

/**
 * What a completion did.
 *
 * @param claimed the next jobs of the queues that became free
 * @param unwritten the jobs that were not deleted, by their ids
 */
public record Completion(Claimed claimed, Map<Long, WriteResult> unwritten) {}
