package dev.pgworker.limit;

import java.lang.annotation.Annotation;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;
import org.springframework.core.MethodIntrospector;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.annotation.AnnotationUtils;
import org.springframework.core.annotation.MergedAnnotation;
import org.springframework.core.annotation.MergedAnnotationPredicates;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.core.annotation.RepeatableContainers;
import org.springframework.format.datetime.standard.DurationFormatterUtils;
import org.springframework.util.ClassUtils;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.task.JobHandler;

/**
 * Reads the {@link ConcurrencyLimit} and {@link RateLimit} annotations of handlers and joins those of the same name. Not
 * thread-safe.
 *
 * @since 0.1.0
 */
public final class LimitMethods {

    private final UnaryOperator<String> resolver;
    private final Map<String, Declared> declared = new LinkedHashMap<>();
    private final List<String> problems = new ArrayList<>();

    /** What a method declares, with the place of the first declaration of the name. */
    private record Declared(String source, Limit limit) {}

    /**
     * Prepares reading.
     *
     * @param resolver replaces placeholders in attributes, or throws an {@code IllegalArgumentException}
     */
    public LimitMethods(UnaryOperator<String> resolver) {
        this.resolver = resolver;
    }

    /** Reads the methods of a class, which may be a proxy's. */
    public LimitMethods add(Class<?> beanClass) {
        Class<?> type = ClassUtils.getUserClass(Arguments.requireNonNull("beanClass", beanClass));
        if (AnnotationUtils.isCandidateClass(type, List.of(ConcurrencyLimit.class, RateLimit.class))) {
            Map<Method, List<Annotation>> methods =
                    MethodIntrospector.selectMethods(type, (Method method) -> annotations(method));
            methods.entrySet().stream()
                    .sorted(Comparator.comparing(method -> source(method.getKey(), type)))
                    .forEach(method -> add(method.getKey(), source(method.getKey(), type), method.getValue()));
        }
        return this;
    }

    /**
     * Returns the limits in the order in which they were found.
     *
     * @throws LimitDefinitionException if an attribute is wrong, or if attributes of one name differ; it tells all mistakes
     */
    public List<Limit> limits() {
        if (!problems.isEmpty()) {
            throw new LimitDefinitionException(problems);
        }
        return declared.values().stream().map(Declared::limit).toList();
    }

    /** Returns null if there are none. A method that overrides another takes that one's place, limits included. */
    private static @Nullable List<Annotation> annotations(Method method) {
        List<Annotation> all = Stream.concat(
                        annotations(method, ConcurrencyLimit.class), annotations(method, RateLimit.class))
                .toList();
        return all.isEmpty() ? null : all;
    }

    private static <A extends Annotation> Stream<A> annotations(Method method, Class<A> type) {
        return MergedAnnotations.from(method, SearchStrategy.TYPE_HIERARCHY, RepeatableContainers.standardRepeatables())
                .stream(type)
                .filter(MergedAnnotationPredicates.firstRunOf(MergedAnnotation::getAggregateIndex))
                .map(MergedAnnotation::synthesize);
    }

    private static String source(Method method, Class<?> type) {
        return Arrays.stream(method.getParameterTypes())
                .map(Class::getSimpleName)
                .collect(Collectors.joining(", ", type.getName() + "." + method.getName() + "(", ")"));
    }

    private void add(Method method, String source, List<Annotation> annotations) {
        JobHandler handler = AnnotatedElementUtils.findMergedAnnotation(method, JobHandler.class);
        for (Annotation annotation : annotations) {
            String place = "@" + annotation.annotationType().getSimpleName() + " of " + source;
            if (handler == null) {
                problems.add(place + " must be used together with @JobHandler, which specifies the task");
                continue;
            }
            try {
                join(
                        place,
                        annotation instanceof ConcurrencyLimit running
                                ? concurrency(running, handler.value())
                                : rate((RateLimit) annotation, handler.value()));
            } catch (IllegalArgumentException e) {
                problems.add(place + ": " + e.getMessage());
            }
        }
    }

    private Limit concurrency(ConcurrencyLimit given, String task) {
        int value = value(given.value(), given.valueString());
        return Limit.concurrency(name(given.name(), task + ".running", given.per()), value, task)
                .per(path(given.per()));
    }

    private Limit rate(RateLimit given, String task) {
        int value = value(given.value(), given.valueString());
        String text = resolver.apply(given.period());
        Duration period;
        try {
            period = DurationFormatterUtils.detectAndParse(text);
        } catch (RuntimeException e) {
            throw new IllegalArgumentException("period must be a duration such as \"1m\", but is \"" + text + "\"", e);
        }
        Limit limit = Limit.rate(name(given.name(), task + ".starts", given.per()), value, period, task)
                .per(path(given.per()));
        return given.burst() == 0 ? limit : limit.withBurst(given.burst());
    }

    private int value(int number, String text) {
        if ((number == 0) == text.isEmpty()) {
            throw new IllegalArgumentException(
                    "exactly one of value, 1 to " + Limit.MOST + ", and valueString must be set");
        }
        if (text.isEmpty()) {
            return number;
        }
        String resolved = resolver.apply(text);
        try {
            return Integer.parseInt(resolved.strip());
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(
                    "valueString must be a number, 1 to " + Limit.MOST + ", but is \"" + resolved + "\"", e);
        }
    }

    private static List<String> path(String per) {
        return per.isEmpty() ? List.of() : Arrays.asList(per.split("\\.", -1));
    }

    private static String name(String given, String task, String per) {
        if (!given.isEmpty()) {
            return given;
        }
        return per.isEmpty() ? task : task + "." + per;
    }

    private void join(String place, Limit limit) {
        Declared before = declared.putIfAbsent(limit.name(), new Declared(place, limit));
        if (before == null) {
            return;
        }
        if (!before.limit.words().equals(limit.words())) {
            throw new IllegalArgumentException(
                    "limit \"" + limit.name() + "\" must be the same wherever it is declared, but is " + limit.words()
                            + " here, and " + before.limit.words() + " in " + before.source);
        }
        if (before.limit.tasks().containsAll(limit.tasks())) {
            throw new IllegalArgumentException("limit \"" + limit.name() + "\" must not be declared twice for task \""
                    + limit.tasks().get(0) + "\": remove one, or give it another name");
        }
        TreeSet<String> tasks = new TreeSet<>(before.limit.tasks());
        tasks.addAll(limit.tasks());
        declared.put(limit.name(), new Declared(before.source, before.limit.withTasks(tasks)));
    }
}
