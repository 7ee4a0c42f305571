package dev.pgworker.autoconfigure;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;

import org.jspecify.annotations.Nullable;
import org.springframework.beans.support.ResourceEditorRegistrar;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.bind.PropertySourcesPlaceholdersResolver;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName.Form;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.context.properties.source.ConfigurationPropertyState;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.core.convert.ConversionService;
import org.springframework.core.env.Environment;
import org.springframework.core.io.DefaultResourceLoader;

/**
 * Reads {@code pgworker.instances.<name>.*}. What is not set there is as in {@code pgworker.*}, except what belongs to one worker
 * alone: its tasks, recurring jobs and data source, and with a data source of its own the connections.
 */
final class InstanceProperties {

    static final String PREFIX = "pgworker.instances";

    private static final Pattern NAME = Pattern.compile("[a-z][a-z0-9]*(-[a-z0-9]+)*+");

    /** The default worker's name, what its beans' names begin with, and the names of its parts in the health endpoint. */
    private static final Set<String> RESERVED =
            Set.of(WorkerInstances.DEFAULT, "worker", "schema", "engine", "threads");

    private static final Set<String> NEVER_INHERITED =
            Set.of("instances", "tasks", "crontab", "crontabfile", "limits", "datasource");

    private static final Set<String> OF_THE_CONNECTION = Set.of(
            "transactionmanager",
            "schema.url",
            "schema.user",
            "schema.password",
            "listen.url",
            "listen.user",
            "listen.password");

    private InstanceProperties() {}

    /**
     * Returns the names of the instances, in alphabetical order.
     *
     * @throws InvalidConfigurationPropertyValueException if one is not allowed
     */
    static Set<String> names(Environment environment) {
        Set<String> names = new TreeSet<>(Binder.get(environment)
                .bind(PREFIX, Bindable.mapOf(String.class, Object.class))
                .orElseGet(Map::of)
                .keySet());
        for (String name : names) {
            if (!NAME.matcher(name).matches() || RESERVED.contains(name)) {
                throw new InvalidConfigurationPropertyValueException(
                        PREFIX,
                        name,
                        "The name of a worker must be lower-case letters and digits, in words that are separated by -, and not"
                                + " one of " + RESERVED + ".");
            }
        }
        names.forEach(name -> requireWithoutBrackets(environment, name));
        return once(names);
    }

    /** In brackets, a name with dashes is another one than without: its properties would not be found. */
    private static void requireWithoutBrackets(Environment environment, String name) {
        boolean inBrackets = name.contains("-")
                && Binder.get(environment)
                        .bind(PREFIX + "[" + name + "]", Bindable.mapOf(String.class, Object.class))
                        .isBound();
        if (inBrackets) {
            throw new InvalidConfigurationPropertyValueException(
                    PREFIX + "[" + name + "]",
                    name,
                    "It must be written without brackets: " + PREFIX + "." + name + ".");
        }
    }

    /** An environment variable has no dashes: it configures the worker whose name has them, and does not make a second one. */
    private static Set<String> once(Set<String> names) {
        Map<String, String> longest = new TreeMap<>();
        names.forEach(name -> longest.merge(
                name.replace("-", ""), name, (one, other) -> one.length() >= other.length() ? one : other));
        return new TreeSet<>(longest.values());
    }

    /** Returns the properties of an instance. */
    static WorkerProperties bind(Environment environment, String instance) {
        ConfigurationPropertyName prefix = ConfigurationPropertyName.of(PREFIX).append(instance);
        List<ConfigurationPropertySource> sources = new ArrayList<>();
        ConfigurationPropertySources.get(environment).forEach(sources::add);
        boolean ownDatabase = new Binder(sources)
                .bind(prefix.append("data-source"), Bindable.of(Object.class))
                .isBound();
        for (ConfigurationPropertySource source : List.copyOf(sources)) {
            sources.add(new Inherited(source, prefix, ownDatabase));
        }
        return new Binder(
                        sources,
                        new PropertySourcesPlaceholdersResolver(environment),
                        (ConversionService) null,
                        new ResourceEditorRegistrar(new DefaultResourceLoader(), environment)::registerCustomEditors)
                .bindOrCreate(prefix, Bindable.of(WorkerProperties.class), null);
    }

    /** Has the value of {@code pgworker.x} for {@code pgworker.instances.<name>.x}. */
    private record Inherited(ConfigurationPropertySource source, ConfigurationPropertyName prefix, boolean ownDatabase)
            implements ConfigurationPropertySource {

        private static final ConfigurationPropertyName WORKER = ConfigurationPropertyName.of("pgworker");

        @Override
        public @Nullable ConfigurationProperty getConfigurationProperty(ConfigurationPropertyName name) {
            ConfigurationPropertyName inherited = inherited(name);
            return inherited == null ? null : source.getConfigurationProperty(inherited);
        }

        @Override
        public ConfigurationPropertyState containsDescendantOf(ConfigurationPropertyName name) {
            ConfigurationPropertyName inherited = inherited(name);
            return inherited == null ? ConfigurationPropertyState.ABSENT : source.containsDescendantOf(inherited);
        }

        private @Nullable ConfigurationPropertyName inherited(ConfigurationPropertyName name) {
            if (!prefix.isAncestorOf(name)) {
                return null;
            }
            ConfigurationPropertyName rest = name.subName(prefix.getNumberOfElements());
            String first = rest.getElement(0, Form.UNIFORM);
            String both = rest.getNumberOfElements() == 1 ? first : first + "." + rest.getElement(1, Form.UNIFORM);
            boolean own = NEVER_INHERITED.contains(first) || (ownDatabase && OF_THE_CONNECTION.contains(both));
            return own ? null : WORKER.append(rest);
        }
    }
}
