package dev.pgworker.internal.store;

import java.util.Map;
import java.util.Set;

/**
 * The tasks that a worker serves, with the ids they have in the database.
 *
 * @param identifiers the identifier of each id
 * @param onlyQueued those of which claims take jobs of queues only, and those that are asked for by their ids
 */
public record TaskIds(Map<Integer, String> identifiers, Set<String> onlyQueued) {

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

    Integer[] unqueuedIds() {
        return identifiers.entrySet().stream()
                .filter(task -> !onlyQueued.contains(task.getValue()))
                .map(Map.Entry::getKey)
                .toArray(Integer[]::new);
    }

    Integer[] ids() {
        return identifiers.keySet().toArray(Integer[]::new);
    }

    Integer[] ids(Set<String> named) {
        return identifiers.entrySet().stream()
                .filter(task -> named.contains(task.getValue()))
                .map(Map.Entry::getKey)
                .toArray(Integer[]::new);
    }

    String nameOf(int id) {
        return identifiers.getOrDefault(id, "task " + id);
    }
}
