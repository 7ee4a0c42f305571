package dev.pgworker.autoconfigure;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName.Form;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.context.properties.source.IterableConfigurationPropertySource;
import org.springframework.core.env.Environment;

import dev.pgworker.autoconfigure.WorkerProperties.TaskDefaults;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.job.JobSpec;
import dev.pgworker.task.RetryDelay;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;

/** What a worker's properties say of single tasks: completes what code leaves open. */
final class DefaultsOfTasks {

    private static final Logger log = WorkerLog.of(DefaultsOfTasks.class);

    private static final int MOST_NAMED = 20;

    private static final Duration LONGEST_DELAY = Duration.ofDays(36_500);

    /** What there is to say of a task, in the uniform form. */
    private static final Set<String> PROPERTIES = Set.of(
            "maxattempts", "priority", "timeout", "backoff", "backoff.delay", "backoff.multiplier", "backoff.maxdelay");

    private final String prefix;
    private final Map<String, JobSpec> specs = new HashMap<>();
    private final Map<String, TaskOptions> options = new HashMap<>();

    /**
     * Reads the properties.
     *
     * @param worker what the names of the worker's properties begin with
     * @throws InvalidConfigurationPropertyValueException if one is out of its range
     */
    DefaultsOfTasks(String worker, Map<String, TaskDefaults> properties) {
        prefix = worker + ".task-defaults.";
        properties.forEach(this::read);
    }

    private void read(String task, TaskDefaults given) {
        String name = prefix + task + ".";
        require(task.length() <= 128, prefix + task, task, "The name of a task must have at most 128 characters.");
        specs.put(task, spec(name, given));
        options.put(task, options(name, given));
    }

    private static JobSpec spec(String name, TaskDefaults given) {
        Integer attempts = given.maxAttempts();
        Integer priority = given.priority();
        require(
                attempts == null || (attempts >= 1 && attempts <= Short.MAX_VALUE),
                name + "max-attempts",
                attempts,
                "It must be between 1 and 32767.");
        require(
                priority == null || (priority >= Short.MIN_VALUE && priority <= Short.MAX_VALUE),
                name + "priority",
                priority,
                "It must be between -32768 and 32767.");
        return JobSpec.builder().maxAttempts(attempts).priority(priority).build();
    }

    private static TaskOptions options(String name, TaskDefaults given) {
        require(
                given.timeout() == null
                        || (!given.timeout().isNegative() && !given.timeout().isZero()),
                name + "timeout",
                given.timeout(),
                "It must be positive.");
        return TaskOptions.DEFAULT.withTimeout(given.timeout()).withRetryDelay(policy(name, given.backOff()));
    }

    private static @Nullable RetryDelay policy(String name, TaskDefaults.@Nullable BackOff given) {
        if (given == null) {
            return null;
        }
        String backOff = name + "back-off.";
        requireDelay(backOff + "delay", given.delay());
        requireDelay(backOff + "max-delay", given.maxDelay());
        require(given.multiplier() >= 1, backOff + "multiplier", given.multiplier(), "It must be at least 1.");
        require(
                given.maxDelay().compareTo(given.delay()) >= 0,
                backOff + "max-delay",
                given.maxDelay(),
                "It must not be shorter than " + backOff + "delay, " + given.delay() + ".");
        return RetryDelay.exponential(given.delay(), given.multiplier(), given.maxDelay());
    }

    private static void requireDelay(String property, Duration value) {
        require(
                !value.isNegative() && value.compareTo(LONGEST_DELAY) <= 0,
                property,
                value,
                "It must be between 0 and 36500 days.");
    }

    private static void require(boolean allowed, String property, @Nullable Object value, String rule) {
        if (!allowed) {
            throw new InvalidConfigurationPropertyValueException(property, value, rule);
        }
    }

    /** Returns whether nothing is said of any task. */
    boolean isEmpty() {
        return specs.isEmpty();
    }

    /** Completes how a job of a task is to be added. */
    JobSpec complete(String task, JobSpec spec) {
        JobSpec defaults = specs.get(task);
        if (defaults == null) {
            return spec;
        }
        return spec.toBuilder()
                .maxAttempts(spec.maxAttempts() == null ? defaults.maxAttempts() : spec.maxAttempts())
                .priority(spec.priority() == null ? defaults.priority() : spec.priority())
                .build();
    }

    /** Completes how the jobs of a handler are run. */
    TaskRegistration complete(TaskRegistration handler) {
        TaskOptions defaults = options.get(handler.identifier());
        if (defaults == null) {
            return handler;
        }
        TaskOptions own = handler.options();
        return handler.with(own.withTimeout(own.timeout() == null ? defaults.timeout() : own.timeout())
                .withRetryDelay(own.retryDelay() == null ? defaults.retryDelay() : own.retryDelay()));
    }

    /** Says which names are those of no task that the application knows: they may be misspelt. */
    void tellUnknown(Set<String> known) {
        Set<String> unknown = new TreeSet<>(specs.keySet());
        unknown.removeAll(known);
        if (!unknown.isEmpty()) {
            log.warn(
                    "{}* names {}, for which this application has neither a handler nor a Task constant; it knows {}",
                    prefix,
                    unknown.stream().limit(MOST_NAMED).toList(),
                    new TreeSet<>(known).stream().limit(MOST_NAMED).toList());
        }
    }

    /** Says which properties are read by nobody: a name with dots that is not in brackets looks like a property of a property. */
    void tellUnread(Environment environment) {
        ConfigurationPropertyName ours = ConfigurationPropertyName.of(prefix.substring(0, prefix.length() - 1));
        Set<String> unread = new TreeSet<>();
        ConfigurationPropertySources.get(environment).forEach(source -> {
            if (source instanceof IterableConfigurationPropertySource all) {
                all.filter(name -> isUnread(ours, name)).forEach(name -> unread.add(name.toString()));
            }
        });
        if (!unread.isEmpty()) {
            log.warn(
                    "{} are not read. A task has max-attempts, priority, timeout, back-off.delay, back-off.multiplier and"
                            + " back-off.max-delay; its name is in brackets if it has other characters than letters, digits,"
                            + " - and _, as in {}[mail.send].timeout",
                    unread.stream().limit(MOST_NAMED).toList(),
                    prefix.substring(0, prefix.length() - 1));
        }
    }

    private static boolean isUnread(ConfigurationPropertyName ours, ConfigurationPropertyName name) {
        int first = ours.getNumberOfElements() + 1;
        return ours.isAncestorOf(name)
                && name.getNumberOfElements() > first
                && !PROPERTIES.contains(IntStream.range(first, name.getNumberOfElements())
                        .mapToObj(element -> name.getElement(element, Form.UNIFORM))
                        .collect(Collectors.joining(".")));
    }
}
