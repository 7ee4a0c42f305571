package dev.pgworker.autoconfigure;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

import dev.pgworker.task.TaskRegistration;

/**
 * Which of an application's workers serves a handler: the one that its annotation names, else each one that lists its task,
 * else the default worker unless that has a list.
 */
final class TaskAssignment {

    private static final String ALL = "*";

    private final Map<String, List<String>> listed = new LinkedHashMap<>();
    private final Set<String> startedByHand = new TreeSet<>();

    /**
     * Creates an assignment.
     *
     * @param properties those of all workers, by name
     */
    TaskAssignment(Map<String, WorkerProperties> properties) {
        properties.forEach((worker, its) -> {
            listed.put(worker, its.tasks());
            if (!its.autoStartup()) {
                startedByHand.add(worker);
            }
        });
    }

    /** Returns whether a worker serves a task whose handler names the given worker, or none if that is empty. */
    boolean serves(String worker, String task, String named) {
        if (!named.isEmpty()) {
            return named.equals(worker);
        }
        if (lists(worker, task)) {
            return true;
        }
        return worker.equals(WorkerInstances.DEFAULT)
                && listed.getOrDefault(worker, List.of()).isEmpty()
                && listed.keySet().stream().noneMatch(other -> lists(other, task));
    }

    boolean serves(String worker, TaskRegistration handler) {
        return serves(worker, handler.identifier(), handler.worker());
    }

    private boolean lists(String worker, String task) {
        List<String> tasks = listed.getOrDefault(worker, List.of());
        return tasks.contains(task) || tasks.contains(ALL);
    }

    /**
     * Refuses handlers of workers that do not exist, and lists of tasks that have no handler, unless the worker is started by
     * hand: a test may have some of the handlers only.
     *
     * @param handlers all handlers of the application
     */
    void requireComplete(List<TaskRegistration> handlers) {
        Set<String> tasks = new TreeSet<>();
        for (TaskRegistration handler : handlers) {
            tasks.add(handler.identifier());
            if (!handler.worker().isEmpty() && !listed.containsKey(handler.worker())) {
                throw new WorkerConfigurationException(
                        handler.source() + " is assigned to the worker \"" + handler.worker()
                                + "\", which does not exist.",
                        "Use one of " + listed.keySet() + ", or configure " + InstanceProperties.PREFIX + "."
                                + handler.worker() + ".");
            }
        }
        listed.forEach((worker, list) -> list.stream()
                .filter(task -> !task.equals(ALL) && !tasks.contains(task) && !startedByHand.contains(worker))
                .findFirst()
                .ifPresent(task -> {
                    throw new InvalidConfigurationPropertyValueException(
                            WorkerInstances.prefix(worker) + ".tasks",
                            task,
                            "It must be tasks that the application has handlers for, or * for all: " + tasks + ".");
                }));
    }
}
