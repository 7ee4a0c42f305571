package dev.pgworker.limit;

import java.lang.annotation.Annotation;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
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
import org.springframework.util.ClassUtils;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.task.JobHandler;

/**
 * Reads the {@link MaxRunning}, {@link RateLimit} and {@link FairShare} annotations of handlers and joins those of the
 * same name. Not thread-safe.
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
        if (AnnotationUtils.isCandidateClass(type, List.of(MaxRunning.class, RateLimit.class, FairShare.class))) {
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
     * @throws LimitDefinitionException if an attribute is wrong, or if attributes of one name differ; it lists all
     *     mistakes
     */
    public List<Limit> limits() {
        if (!problems.isEmpty()) {
            throw new LimitDefinitionException(problems);
        }
        return declared.values().stream().map(Declared::limit).toList();
    }

    /** Returns null if there are none. A method that overrides another takes that one's place, limits included. */
    private static @Nullable List<Annotation> annotations(Method method) {
        List<Annotation> all = Stream.of(MaxRunning.class, RateLimit.class, FairShare.class)
                .<Annotation>flatMap(type -> annotations(method, type))
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
                join(place, limit(AnnotationUtils.getAnnotationAttributes(annotation), handler.value()));
            } catch (IllegalArgumentException e) {
                String message = String.valueOf(e.getMessage());
                problems.add(place + ": " + message.replaceAll("\\b(maxRunning|maxStarts)\\b", "value"));
            }
        }
    }

    private Limit limit(Map<String, Object> given, String task) {
        Map<String, Object> attributes = new HashMap<>(Map.of("tasks", List.of(task)));
        String per = String.valueOf(given.get("per"));
        attributes.put("per", per);
        String kind;
        if (given.get("weights") instanceof String[] weights) {
            kind = "share";
            attributes.put("weights", Arrays.stream(weights).map(resolver).toList());
        } else {
            kind = given.containsKey("period") ? "starts" : "running";
            String text = String.valueOf(given.get("valueString"));
            attributes.put(
                    kind.equals("starts") ? "maxStarts" : "maxRunning",
                    text.isEmpty() ? given.get("value") : resolver.apply(text));
            attributes.put("period", given.get("period") instanceof String period ? resolver.apply(period) : null);
            attributes.put("burst", Integer.valueOf(0).equals(given.get("burst")) ? null : given.get("burst"));
        }
        String name = String.valueOf(given.get("name"));
        return LimitAttributes.limit(
                name.isEmpty() ? task + "." + kind + (per.isEmpty() ? "" : "." + per) : name, attributes);
    }

    private void join(String place, Limit limit) {
        Declared before = declared.putIfAbsent(limit.name(), new Declared(place, limit));
        if (before == null) {
            return;
        }
        if (!before.limit.withTasks(limit.tasks()).equals(limit)) {
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
