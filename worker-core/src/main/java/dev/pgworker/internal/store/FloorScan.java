package dev.pgworker.internal.store;

import java.util.List;

/**
 * What there is that claims pass over which begin at floors.
 *
 * @param levels the priorities of jobs without a queue, due or not
 * @param strays ids of due jobs below the floors
 */
public record FloorScan(List<Integer> levels, List<Long> strays) {}
