package dev.pgworker.autoconfigure;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;

import org.slf4j.Logger;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.limit.Limit;
import dev.pgworker.limit.LimitMethods;

/** Joins everything in an application that declares limits: annotated methods, beans and properties. */
final class LimitSources {

    private static final Logger log = WorkerLog.of(LimitSources.class);

    private final LimitMethods methods;

    /**
     * Reads annotated methods.
     *
     * @param beanClasses the classes whose methods may be annotated
     * @param resolver replaces placeholders in the attributes
     */
    LimitSources(Collection<Class<?>> beanClasses, UnaryOperator<String> resolver) {
        methods = new LimitMethods(resolver);
        beanClasses.forEach(this::addMethods);
    }

    private void addMethods(Class<?> type) {
        try {
            methods.add(type);
        } catch (IllegalStateException | LinkageError e) {
            // A method mentions a class of an optional dependency that is not there.
            log.debug("The methods of {} cannot be read", type, e);
        }
    }

    /**
     * Returns the limits of one worker. Handlers of other workers may share one: each worker declares all of it.
     *
     * @param prefix what the names of the properties begin with
     * @param served the tasks that the worker serves
     * @throws dev.pgworker.limit.LimitDefinitionException if annotations are wrong; it tells all mistakes
     * @throws InvalidConfigurationPropertyValueException if a property is not allowed
     * @throws WorkerConfigurationException if a bean has the name of another limit
     */
    List<Limit> limits(
            String prefix,
            Map<String, WorkerProperties.LimitProperties> properties,
            Set<String> served,
            List<Limit> beans) {
        Map<String, Limit> limits = new LinkedHashMap<>();
        methods.limits().stream()
                .filter(limit -> limit.tasks().stream().anyMatch(served::contains))
                .forEach(limit -> limits.put(limit.name(), limit));
        for (Limit bean : beans) {
            Limit before = limits.putIfAbsent(bean.name(), bean);
            if (before != null) {
                throw new WorkerConfigurationException(
                        "There are two limits of the name \"" + bean.name() + "\": " + before + " and " + bean + ".",
                        "Give one of them another name.");
            }
        }
        properties.forEach((name, given) -> limits.put(name, given.limit(prefix + "." + name, name, limits.get(name))));
        return List.copyOf(limits.values());
    }
}
