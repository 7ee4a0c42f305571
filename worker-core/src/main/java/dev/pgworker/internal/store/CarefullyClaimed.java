package dev.pgworker.internal.store;

import java.util.List;

/**
 * What a careful claim brought.
 *
 * @param refused what could not be claimed
 */
public record CarefullyClaimed(Claimed claimed, List<Refused> refused) {}
