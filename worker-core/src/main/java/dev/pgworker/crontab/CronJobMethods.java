package dev.pgworker.crontab;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.stream.Collectors;

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

import dev.pgworker.task.JobHandler;

/** Reads the {@link CronJob} annotations of a class; what is wrong with them is noted with class and method. */
final class CronJobMethods {

    private final List<CrontabProblem> problems;
    private final Predicate<JobHandler> wanted;

    CronJobMethods(List<CrontabProblem> problems, Predicate<JobHandler> wanted) {
        this.problems = problems;
        this.wanted = wanted;
    }

    /** Returns the items of a class, which may be a proxy's, in the order of the methods' names. */
    List<CronItem> find(Class<?> beanClass) {
        Class<?> type = ClassUtils.getUserClass(beanClass);
        if (!AnnotationUtils.isCandidateClass(type, CronJob.class)) {
            return List.of();
        }
        Map<Method, List<CronJob>> methods = MethodIntrospector.selectMethods(type, CronJobMethods::schedules);
        List<CronItem> items = new ArrayList<>();
        methods.entrySet().stream()
                .sorted(Comparator.comparing(method -> source(method.getKey(), type)))
                .forEach(method ->
                        method.getValue().forEach(schedule -> addItem(method.getKey(), type, schedule, items)));
        return items;
    }

    /** Returns null if there are none. A method that overrides another takes that one's place, schedules included. */
    private static @Nullable List<CronJob> schedules(Method method) {
        List<CronJob> schedules =
                MergedAnnotations.from(
                                method, SearchStrategy.TYPE_HIERARCHY, RepeatableContainers.standardRepeatables())
                        .stream(CronJob.class)
                        .filter(MergedAnnotationPredicates.firstRunOf(MergedAnnotation::getAggregateIndex))
                        .map(MergedAnnotation::synthesize)
                        .toList();
        return schedules.isEmpty() ? null : schedules;
    }

    private static String source(Method method, Class<?> type) {
        return Arrays.stream(method.getParameterTypes())
                .map(Class::getSimpleName)
                .collect(Collectors.joining(", ", "@CronJob of " + type.getName() + "." + method.getName() + "(", ")"));
    }

    private void addItem(Method method, Class<?> type, CronJob schedule, List<CronItem> items) {
        String source = source(method, type);
        JobHandler handler = AnnotatedElementUtils.findMergedAnnotation(method, JobHandler.class);
        if (handler == null) {
            problems.add(new CrontabProblem(
                    source,
                    0,
                    0,
                    schedule.value(),
                    "must be used together with @JobHandler, which specifies the task to run"));
            return;
        }
        if (!wanted.test(handler)) {
            return;
        }
        CronItem item = new CronJobAttributes(source, schedule, problems).item(handler.value());
        if (item != null) {
            items.add(item);
        }
    }
}
