package dev.pgworker.internal.store;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;

/**
 * The tasks that a worker serves, with the ids they have in the database.
 *
 * @param identifiers the identifier of each id
 * @param onlyQueued those of which claims take jobs of queues only, and those that are asked for by their ids
 * @param queued whether jobs of queues are taken at all
 */
public record TaskIds(Map<Integer, String> identifiers, Set<String> onlyQueued, boolean queued) {

    /** No tasks. */
    public static final TaskIds NONE = new TaskIds(Map.of());

    /** Copies both. */
    public TaskIds {
        identifiers = Map.copyOf(identifiers);
        onlyQueued = Set.copyOf(onlyQueued);
    }

    /** Tasks of which claims take all jobs. */
    public TaskIds(Map<Integer, String> identifiers) {
        this(identifiers, Set.of());
    }

    /** Tasks of some of which claims take jobs of queues only. */
    public TaskIds(Map<Integer, String> identifiers, Set<String> onlyQueued) {
        this(identifiers, onlyQueued, true);
    }

    /** Returns those of these tasks, without jobs of queues. */
    public TaskIds onlyUnqueued(Set<String> some) {
        Map<Integer, String> chosen = new HashMap<>(identifiers);
        chosen.values().retainAll(some);
        return new TaskIds(chosen, Set.of(), false);
    }

    /** Returns those of which claims take jobs without a queue, too. */
    public TaskIds unqueued() {
        if (onlyQueued.isEmpty()) {
            return this;
        }
        Map<Integer, String> others = new HashMap<>(identifiers);
        others.values().removeAll(onlyQueued);
        return new TaskIds(others);
    }

    Integer[] unqueuedIds() {
        return identifiers.entrySet().stream()
                .filter(task -> !onlyQueued.contains(task.getValue()))
                .map(Map.Entry::getKey)
                .toArray(Integer[]::new);
    }

    Integer[] ids() {
        return identifiers.keySet().toArray(Integer[]::new);
    }

    String nameOf(int id) {
        return identifiers.getOrDefault(id, "task " + id);
    }
}
