package dev.pgworker.task;

import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Type;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Collectors;

import org.jspecify.annotations.Nullable;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.BeanUtils;
import org.springframework.core.MethodIntrospector;
import org.springframework.core.ResolvableType;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.annotation.AnnotationUtils;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.format.datetime.standard.DurationFormatterUtils;
import org.springframework.util.ClassUtils;

import dev.pgworker.internal.argument.Arguments;

/**
 * Finds the methods of a bean that are annotated with {@link JobHandler}, directly, through a composed annotation, or
 * in a superclass or interface.
 *
 * <p>A method that cannot work is rejected here rather than when its first job runs.
 *
 * @since 0.1.0
 */
public final class JobHandlerMethods {

    private static final String ASYNC = "org.springframework.scheduling.annotation.Async";

    private JobHandlerMethods() {}

    /**
     * Returns the handlers of a bean, which may be an AOP proxy; empty if it has none.
     *
     * @throws HandlerDefinitionException if an annotated method cannot be a handler, or if the bean is a proxy on which
     *     it cannot be called
     */
    public static List<TaskRegistration> find(Object bean) {
        requireCallable(bean);
        return registrations(handlers(AopUtils.getTargetClass(bean), () -> bean, BeanUtils::instantiateClass));
    }

    /**
     * Checks that every handler of a bean can be called on it.
     *
     * @throws HandlerDefinitionException if the bean is a proxy on which a handler cannot be called
     */
    public static void requireCallable(Object bean) {
        Arguments.requireNonNull("bean", bean);
        RetryDelay none = (job, error) -> Duration.ZERO;
        handlers(AopUtils.getTargetClass(bean), () -> bean, type -> none)
                .forEach(handler -> handler.invoker().resolve(bean.getClass()));
    }

    /**
     * Returns the handlers of a bean that does not have to exist yet; empty if it has none.
     *
     * @param targetClass the class of the bean, behind any proxy
     * @param bean supplies the bean or its proxy; called for every job, on the thread that runs it, and never before
     * @throws HandlerDefinitionException if an annotated method cannot be a handler. If the bean turns out to be a
     *     proxy on which the method cannot be called, the same exception is thrown when a job is run
     */
    public static List<TaskRegistration> find(Class<?> targetClass, Supplier<?> bean) {
        return find(targetClass, bean, BeanUtils::instantiateClass);
    }

    /**
     * Same as {@link #find(Class, Supplier)}, with retry delays that are beans.
     *
     * @param policies supplies the instance of the class that {@link JobHandler#retryDelay()} specifies
     */
    public static List<TaskRegistration> find(Class<?> targetClass, Supplier<?> bean, RetryDelays policies) {
        Arguments.requireNonNull("targetClass", targetClass);
        Arguments.requireNonNull("bean", bean);
        Arguments.requireNonNull("policies", policies);
        return registrations(handlers(targetClass, bean, policies));
    }

    /**
     * Supplies the instances of retry delays that annotations specify by class.
     *
     * @since 0.1.0
     */
    @FunctionalInterface
    public interface RetryDelays {

        /** Returns an instance of the class, or throws a runtime exception that explains why there is none. */
        RetryDelay get(Class<? extends RetryDelay> type);
    }

    private record Handler(
            String identifier,
            String source,
            @Nullable Type payloadType,
            MethodInvoker invoker,
            TaskOptions options,
            String worker) {}

    private static List<Handler> handlers(Class<?> beanClass, Supplier<?> bean, RetryDelays policies) {
        Class<?> targetClass = ClassUtils.getUserClass(beanClass);
        if (!AnnotationUtils.isCandidateClass(targetClass, JobHandler.class)) {
            return List.of();
        }
        Map<Method, JobHandler> methods = MethodIntrospector.selectMethods(
                targetClass, (Method method) -> AnnotatedElementUtils.findMergedAnnotation(method, JobHandler.class));
        List<Handler> handlers = new ArrayList<>();
        methods.forEach((method, annotation) -> handlers.add(handler(method, annotation, targetClass, bean, policies)));
        // Reflection gives methods in no particular order.
        handlers.sort(Comparator.comparing(Handler::source));
        return handlers;
    }

    private static List<TaskRegistration> registrations(List<Handler> handlers) {
        return handlers.stream()
                .map(handler -> new TaskRegistration(
                        handler.identifier(),
                        handler.source(),
                        handler.payloadType(),
                        handler.invoker(),
                        handler.options(),
                        handler.worker()))
                .toList();
    }

    private static Handler handler(
            Method method, JobHandler annotation, Class<?> targetClass, Supplier<?> bean, RetryDelays policies) {
        String source = source(method, targetClass);
        requireIdentifier(annotation.value(), source);
        requireInstanceMethod(method, source);
        SuspendFunctions.requireCallable(method, source, JobHandlerMethods.class.getClassLoader());
        requireWorkDoneOnReturn(method, targetClass, source);
        HandlerParameters parameters = HandlerParameters.of(method, targetClass, source);
        requireListOfItems(method, parameters, source);
        requireRoomForSteps(method, annotation, parameters, source);
        return new Handler(
                annotation.value(),
                source,
                parameters.payloadType(),
                new MethodInvoker(method, targetClass, source, parameters, bean),
                options(annotation, source, policies),
                annotation.worker());
    }

    private static String source(Method method, Class<?> targetClass) {
        return Arrays.stream(method.getParameterTypes())
                .map(Class::getSimpleName)
                .collect(Collectors.joining(", ", targetClass.getName() + "." + method.getName() + "(", ")"));
    }

    private static void requireIdentifier(String identifier, String source) {
        try {
            Arguments.requireIdentifier(identifier);
        } catch (IllegalArgumentException e) {
            throw new HandlerDefinitionException(
                    source + " has no valid task identifier: " + e.getMessage(),
                    "Give @JobHandler an identifier of 1 to 128 characters");
        }
    }

    private static void requireListOfItems(Method method, HandlerParameters parameters, String source) {
        if (SuspendFunctions.returnType(method) != BatchResult.class) {
            return;
        }
        Type payload = parameters.payloadType();
        if (payload == null || ResolvableType.forType(payload).toClass() != List.class) {
            throw new HandlerDefinitionException(
                    source + " returns BatchResult, but its payload is "
                            + (payload == null ? "no parameter" : payload.getTypeName()) + " and not a list of items",
                    "Give it a parameter of type List<Item>, or return void");
        }
    }

    /** A step is recorded on its own: neither a surrounding transaction nor a payload that shrinks goes with that. */
    private static void requireRoomForSteps(
            Method method, JobHandler annotation, HandlerParameters parameters, String source) {
        boolean batch = SuspendFunctions.returnType(method) == BatchResult.class;
        if (parameters.takesSteps() && (annotation.transactional() || annotation.direct() || batch)) {
            throw new HandlerDefinitionException(
                    source + " takes JobSteps, but is "
                            + (batch ? "a batch handler" : annotation.direct() ? "direct" : "transactional"),
                    batch
                            ? "Have it return void, or remove JobSteps"
                            : "Remove " + (annotation.direct() ? "direct" : "transactional")
                                    + ", and do what belongs together in JobSteps.inTransaction");
        }
    }

    private static TaskOptions options(JobHandler annotation, String source, RetryDelays policies) {
        try {
            return new TaskOptions(
                    annotation.maxAttempts() == 0 ? null : annotation.maxAttempts(),
                    annotation.timeout().isEmpty() ? null : DurationFormatterUtils.detectAndParse(annotation.timeout()),
                    annotation.retryDelay() == RetryDelay.class ? null : policies.get(annotation.retryDelay()),
                    annotation.transactional(),
                    annotation.direct(),
                    new LinkedHashSet<>(List.of(annotation.noRetryFor())),
                    new LinkedHashSet<>(List.of(annotation.retryFor())));
        } catch (RuntimeException e) {
            throw new HandlerDefinitionException(
                    source + " has an option that cannot be used: " + e.getMessage(),
                    "Correct @JobHandler: maxAttempts is 1 to 32767, timeout a positive duration such as \"30s\","
                            + " retryDelay a class with a bean or with a constructor without parameters; direct and transactional"
                            + " exclude each other, and no type is in both noRetryFor and retryFor");
        }
    }

    private static void requireInstanceMethod(Method method, String source) {
        if (Modifier.isStatic(method.getModifiers())) {
            throw new HandlerDefinitionException(
                    source + " is static, but a handler is a method of a bean", "Remove static");
        }
        if (Modifier.isPrivate(method.getModifiers())) {
            throw new HandlerDefinitionException(
                    source + " is private, so that proxies, and with them @Transactional, would be bypassed",
                    "Make the method package-private, protected or public");
        }
    }

    /** The job is completed, which deletes it, when the method returns. */
    private static void requireWorkDoneOnReturn(Method method, Class<?> targetClass, String source) {
        Class<?> returned = SuspendFunctions.returnType(method);
        if (HandlerResults.isUnfinished(returned)) {
            throw new HandlerDefinitionException(
                    source + " returns " + returned.getSimpleName()
                            + ", and its job would be completed before the work is done",
                    "Wait in the method for work that other threads do, or that the value stands for, and return what it"
                            + " gives, or void");
        }
        if (isAsync(method) || isAsync(targetClass)) {
            throw new HandlerDefinitionException(
                    source + " is @Async: it returns at once, and its job would be completed before the work is done"
                            + " and never retried",
                    "Remove @Async, from the class too; the worker runs handlers on threads of its own");
        }
    }

    private static boolean isAsync(AnnotatedElement element) {
        return MergedAnnotations.from(element, SearchStrategy.TYPE_HIERARCHY).isPresent(ASYNC);
    }
}
