package dev.pgworker.task;

import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * The tasks that an application can run, one handler for each identifier. Immutable.
 *
 * @since 0.1.0
 */
public final class TaskRegistry {

    private final Map<String, TaskRegistration> registrations;

    private TaskRegistry(Map<String, TaskRegistration> registrations) {
        this.registrations = registrations;
    }

    /**
     * Returns the registry of the given tasks.
     *
     * @throws HandlerDefinitionException if an identifier has several handlers; the message lists all such identifiers
     *     with their handlers
     */
    public static TaskRegistry of(Collection<TaskRegistration> registrations) {
        Map<String, List<TaskRegistration>> byIdentifier = new LinkedHashMap<>();
        for (TaskRegistration registration : Arguments.requireList("registrations", registrations)) {
            byIdentifier
                    .computeIfAbsent(registration.identifier(), identifier -> new ArrayList<>())
                    .add(registration);
        }
        String duplicates = byIdentifier.entrySet().stream()
                .filter(entry -> entry.getValue().size() > 1)
                .map(entry -> "\"" + entry.getKey() + "\" by "
                        + entry.getValue().stream()
                                .map(TaskRegistration::source)
                                .collect(Collectors.joining(" and ")))
                .collect(Collectors.joining("; "));
        if (!duplicates.isEmpty()) {
            throw new HandlerDefinitionException(
                    "A task must have one handler, but several handlers are registered for " + duplicates,
                    "Keep one of the handlers, or give each its own identifier");
        }
        Map<String, TaskRegistration> unique = new LinkedHashMap<>();
        byIdentifier.forEach((identifier, list) -> unique.put(identifier, list.get(0)));
        return new TaskRegistry(Collections.unmodifiableMap(unique));
    }

    /** Returns the identifiers in the order of registration, as an unmodifiable set. */
    public Set<String> identifiers() {
        return registrations.keySet();
    }

    /** Returns the task of this name, or null if this application has none. */
    public @Nullable TaskRegistration find(String identifier) {
        return registrations.get(identifier);
    }

    /**
     * Rejects task constants whose payload types do not match those of the handlers of their tasks. Constants of tasks
     * that this application does not run are ignored.
     *
     * @throws HandlerDefinitionException if there are any; the message lists all of them with their handlers and both
     *     types
     */
    public void requireTypesOf(Collection<DeclaredTask> declared) {
        String mismatches = Arguments.requireList("declared", declared).stream()
                .map(this::mismatch)
                .filter(Objects::nonNull)
                .distinct()
                .collect(Collectors.joining("; "));
        if (!mismatches.isEmpty()) {
            throw new HandlerDefinitionException(
                    "A task constant and the handler of its task must have the same payload type, but " + mismatches,
                    "Give both the same type, or give the tasks different identifiers. A handler that takes any JSON has a"
                            + " parameter of type JsonNode or Map");
        }
    }

    private @Nullable String mismatch(DeclaredTask declared) {
        String identifier = declared.task().identifier();
        Type written = declared.task().payloadType();
        TaskRegistration handler = registrations.get(identifier);
        Type read = handler == null ? null : handler.payloadType();
        if (handler == null || read == null || PayloadFit.fits(written, read)) {
            return null;
        }
        return declared.source() + " of task \"" + identifier + "\" has " + written.getTypeName() + " while "
                + handler.source() + " takes " + read.getTypeName();
    }

    /** Returns true if there is no task. */
    public boolean isEmpty() {
        return registrations.isEmpty();
    }

    /** Returns the identifiers of the tasks whose jobs are locked, run and deleted in one transaction. */
    public Set<String> directIdentifiers() {
        return registrations.values().stream()
                .filter(task -> task.options().direct())
                .map(TaskRegistration::identifier)
                .collect(Collectors.toUnmodifiableSet());
    }

    /** Returns true if a handler runs in a transaction. */
    public boolean hasTransactional() {
        return registrations.values().stream().anyMatch(task -> task.options().transactional());
    }

    /**
     * Rejects handlers that run in a transaction.
     *
     * @throws HandlerDefinitionException if there is such a handler
     */
    public void requireNoneTransactional() {
        for (TaskRegistration task : registrations.values()) {
            if (task.options().transactional()) {
                throw new HandlerDefinitionException(
                        task.source()
                                + " is transactional, but there is no transaction manager of the worker's data source",
                        "Give the application a PlatformTransactionManager for that data source, marked with"
                                + " @WorkerTransactionManager if there are several, or set transactional to false");
            }
        }
    }
}
