package dev.pgworker.internal.store;

import java.util.List;
import java.util.Set;

/**
 * Jobs that a careful claim leaves alone.
 *
 * @param queueIds queues of which nothing is claimed
 * @param tasks identifiers of tasks whose jobs are left alone, and with each the queue that it is the next one of
 */
public record PassedOver(List<Long> jobIds, List<Integer> queueIds, Set<String> tasks) {

    /** Nothing. */
    public static final PassedOver NONE = new PassedOver(List.of(), List.of(), Set.of());
}
