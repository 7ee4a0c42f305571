package dev.pgworker.crontab;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
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
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.util.ClassUtils;

import dev.pgworker.task.JobHandler;

/** Reads the {@link CronJob} annotations of a class; what is wrong with them is noted with class and method. */
final class CronJobMethods {

    private final UnaryOperator<String> resolver;
    private final List<CrontabProblem> problems;
    private final List<CronItem> items = new ArrayList<>();
    private final List<DeclaredSchedule> schedules = new ArrayList<>();

    /**
     * Prepares reading.
     *
     * @param resolver replaces placeholders in attributes
     * @param problems takes what is wrong
     */
    CronJobMethods(UnaryOperator<String> resolver, List<CrontabProblem> problems) {
        this.resolver = resolver;
        this.problems = problems;
    }

    /** Reads the methods of a class, which may be a proxy's, in the order of their names. */
    CronJobMethods read(Class<?> beanClass, Predicate<JobHandler> wanted) {
        Class<?> type = ClassUtils.getUserClass(beanClass);
        if (AnnotationUtils.isCandidateClass(type, CronJob.class)) {
            Map<Method, List<CronJob>> methods = MethodIntrospector.selectMethods(type, CronJobMethods::annotations);
            methods.entrySet().stream()
                    .sorted(Comparator.comparing(method -> source(method.getKey(), type)))
                    .forEach(method -> read(method.getKey(), source(method.getKey(), type), method.getValue(), wanted));
        }
        return this;
    }

    /** Returns the items that have been read. */
    List<CronItem> items() {
        return items;
    }

    /** Returns the schedules that have been read. */
    List<DeclaredSchedule> schedules() {
        return schedules;
    }

    /** Returns null if there are none. A method that overrides another takes that one's place, schedules included. */
    private static @Nullable List<CronJob> annotations(Method method) {
        List<CronJob> annotations =
                MergedAnnotations.from(
                                method, SearchStrategy.TYPE_HIERARCHY, RepeatableContainers.standardRepeatables())
                        .stream(CronJob.class)
                        .filter(MergedAnnotationPredicates.firstRunOf(MergedAnnotation::getAggregateIndex))
                        .map(MergedAnnotation::synthesize)
                        .toList();
        return annotations.isEmpty() ? null : annotations;
    }

    private static String source(Method method, Class<?> type) {
        return Arrays.stream(method.getParameterTypes())
                .map(Class::getSimpleName)
                .collect(Collectors.joining(", ", "@CronJob of " + type.getName() + "." + method.getName() + "(", ")"));
    }

    private void read(Method method, String source, List<CronJob> declared, Predicate<JobHandler> wanted) {
        JobHandler handler = AnnotatedElementUtils.findMergedAnnotation(method, JobHandler.class);
        if (handler == null) {
            CronJob first = declared.get(0);
            addProblem(
                    source,
                    first.value() + first.cron() + first.fixedRate() + first.fixedDelay(),
                    "must be used together with @JobHandler, which specifies the task to run");
            return;
        }
        if (!wanted.test(handler)) {
            return;
        }
        if (isScheduledBySpring(method)) {
            addProblem(
                    source,
                    "@Scheduled",
                    "the method must not have both: remove @Scheduled to have one instance of the application run it, as a"
                            + " job, or remove @CronJob to have each instance run it by itself");
        }
        declared.forEach(one -> new CronJobAttributes(one, new AttributeReader(source, resolver, problems))
                .declare(handler.value(), items, schedules));
    }

    private static boolean isScheduledBySpring(Method method) {
        return MergedAnnotations.from(method, SearchStrategy.TYPE_HIERARCHY, RepeatableContainers.standardRepeatables())
                .isPresent(Scheduled.class);
    }

    private void addProblem(String source, String text, String message) {
        problems.add(new CrontabProblem(source, 0, 0, text, message));
    }
}
