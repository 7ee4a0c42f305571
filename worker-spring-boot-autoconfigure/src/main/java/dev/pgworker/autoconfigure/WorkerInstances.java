package dev.pgworker.autoconfigure;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

import org.springframework.beans.factory.BeanFactory;
import org.springframework.core.env.Environment;

/**
 * The workers of an application: the worker of {@code pgworker.*}, whose name is {@code "default"}, and those of {@code
 * pgworker.instances.<name>.*}. Thread-safe.
 *
 * @since 0.1.0
 */
public final class WorkerInstances {

    /** The name of the worker that {@code pgworker.*} configures. */
    public static final String DEFAULT = "default";

    private final Map<String, WorkerInstance> instances = new LinkedHashMap<>();
    private final Map<String, WorkerProperties> properties;

    /** Creates the instances from the properties of each. */
    WorkerInstances(BeanFactory beans, Map<String, WorkerProperties> properties) {
        this.properties = properties;
        properties.forEach((name, its) -> instances.put(name, new WorkerInstance(name, beans, its.autoStartup())));
    }

    /** Returns all workers, the default one first, as an unmodifiable list. */
    public List<WorkerInstance> all() {
        return List.copyOf(instances.values());
    }

    /**
     * Returns the worker with the given name.
     *
     * @throws IllegalArgumentException if there is none; the message lists the names of the existing workers
     */
    public WorkerInstance get(String name) {
        WorkerInstance instance = instances.get(name);
        if (instance == null) {
            throw new IllegalArgumentException(
                    "instance must be one of " + instances.keySet() + ", but is \"" + name + "\"");
        }
        return instance;
    }

    /**
     * Returns the names in {@code pgworker.instances}, in alphabetical order, without the default one.
     *
     * @throws org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException if one is not
     *     allowed
     */
    public static Set<String> names(Environment environment) {
        return InstanceProperties.names(environment);
    }

    /** Returns the properties of all workers by name, the default one first. */
    Map<String, WorkerProperties> properties() {
        return properties;
    }

    /** Returns the properties of a worker, or throws as {@link #get}. */
    WorkerProperties properties(String name) {
        return Objects.requireNonNull(properties.get(get(name).name()));
    }

    /** Returns what the names of a worker's properties begin with. */
    static String prefix(String instance) {
        return instance.equals(DEFAULT) ? "pgworker" : InstanceProperties.PREFIX + "." + instance;
    }
}
