package dev.pgworker.autoconfigure;

import java.io.IOException;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.aop.framework.autoproxy.AutoProxyUtils;
import org.springframework.aop.scope.ScopedObject;
import org.springframework.aop.scope.ScopedProxyUtils;
import org.springframework.beans.BeanUtils;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.core.NestedExceptionUtils;
import org.springframework.core.annotation.AnnotationUtils;
import org.springframework.core.type.classreading.SimpleMetadataReaderFactory;
import org.springframework.util.ClassUtils;

import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.job.Task;
import dev.pgworker.task.DeclaredTask;
import dev.pgworker.task.HandlerDefinitionException;
import dev.pgworker.task.JobHandler;
import dev.pgworker.task.JobHandlerMethods;
import dev.pgworker.task.RetryDelay;
import dev.pgworker.task.TaskRegistration;

/**
 * Finds the {@link JobHandler} methods of all beans without creating one. A bean that exists already is searched by
 * its class, any other by the type it is declared with.
 */
final class HandlerBeans {

    private static final Logger log = WorkerLog.of(HandlerBeans.class);

    private final ConfigurableListableBeanFactory beanFactory;
    private boolean searched;

    HandlerBeans(ConfigurableListableBeanFactory beanFactory) {
        this.beanFactory = beanFactory;
    }

    /**
     * Returns the handlers in the order of their beans' registration.
     *
     * @throws HandlerDefinitionException if an annotated method cannot be a handler
     */
    List<TaskRegistration> find() {
        searched = true;
        return beanNames().flatMap(name -> handlersOf(name).stream()).toList();
    }

    /** Returns the classes in which handlers are sought, in the order of their beans' registration, each once. */
    Set<Class<?>> classes() {
        Set<Class<?>> classes = new LinkedHashSet<>();
        beanNames().forEach(name -> {
            try {
                Class<?> type = targetClass(name);
                if (type != null) {
                    classes.add(type);
                }
            } catch (IllegalStateException | LinkageError e) {
                log.debug("The class of bean {} cannot be read", name, e);
            }
        });
        return classes;
    }

    /**
     * Returns an attribute of an annotation with its placeholders replaced.
     *
     * @throws IllegalArgumentException if one has no value
     */
    String resolve(String attribute) {
        return Objects.requireNonNullElse(beanFactory.resolveEmbeddedValue(attribute), "");
    }

    /**
     * Returns the tasks that the application adds jobs by, as far as they can be found: beans, and constants of the classes of
     * beans, of their supertypes and of the classes in them.
     */
    List<DeclaredTask> declaredTasks() {
        Stream<DeclaredTask> beans = Arrays.stream(beanFactory.getBeanNamesForType(Task.class, true, false))
                .map(name -> new DeclaredTask((Task<?>) beanFactory.getBean(name), "bean \"" + name + "\""));
        return Stream.concat(beans, classes().stream().flatMap(type -> DeclaredTask.in(type).stream()))
                .toList();
    }

    private Stream<String> beanNames() {
        return Arrays.stream(beanFactory.getBeanNamesForType(Object.class, true, false))
                .filter(name -> !ScopedProxyUtils.isScopedTarget(name));
    }

    /** Returns true if {@link #find} has been called. */
    boolean isSearched() {
        return searched;
    }

    /**
     * Searches again and refuses a result that an earlier search did not have: a bean whose method declares an
     * interface shows its handlers only when it exists.
     *
     * @param served the tasks that a worker serves
     * @param expected whether that worker has to serve a handler
     */
    void requireComplete(Set<String> served, Predicate<TaskRegistration> expected) {
        for (TaskRegistration handler : find()) {
            if (expected.test(handler) && !served.contains(handler.identifier())) {
                throw new IllegalStateException("The Worker bean was created before the bean of " + handler.source()
                        + " and does not serve its task \"" + handler.identifier()
                        + "\". Inject ObjectProvider<Worker> instead of Worker, or declare the class of the"
                        + " handler as the return type of its bean method.");
            }
        }
    }

    private List<TaskRegistration> handlersOf(String name) {
        try {
            Class<?> type = targetClass(name);
            if (type == null || !AnnotationUtils.isCandidateClass(type, JobHandler.class)) {
                return List.of();
            }
            List<TaskRegistration> handlers =
                    JobHandlerMethods.find(type, () -> beanFactory.getBean(name), this::retryDelay);
            if (!handlers.isEmpty() && isCreated(name)) {
                JobHandlerMethods.requireCallable(beanFactory.getBean(name));
            }
            return handlers;
        } catch (HandlerDefinitionException e) {
            throw e;
        } catch (IllegalStateException | LinkageError e) {
            // A method mentions a class of an optional dependency that is not there.
            tellUnreadable(name, e);
            return List.of();
        }
    }

    /** Beans of libraries may have no handlers; those of the application whose class has one are missed. */
    private void tellUnreadable(String name, Throwable e) {
        if (mentionsHandlers(name)) {
            log.warn(
                    "The handlers of bean {} are not registered, because a method of its class refers to a class that is not on the"
                            + " class path: {}. Add the dependency, or move the handlers to a class of their own",
                    name,
                    NestedExceptionUtils.getMostSpecificCause(e).toString());
        } else {
            log.debug("The methods of bean {} cannot be read", name, e);
        }
    }

    /** Reads the class file, which needs none of the classes that it mentions. */
    private boolean mentionsHandlers(String name) {
        try {
            Class<?> type = targetClass(name);
            return type != null
                    && new SimpleMetadataReaderFactory(type.getClassLoader())
                            .getMetadataReader(ClassUtils.getUserClass(type).getName())
                            .getAnnotationMetadata()
                            .hasAnnotatedMethods(JobHandler.class.getName());
        } catch (IOException | RuntimeException | LinkageError e) {
            return false;
        }
    }

    private RetryDelay retryDelay(Class<? extends RetryDelay> type) {
        RetryDelay bean = beanFactory.getBeanProvider(type).getIfUnique();
        return bean == null ? BeanUtils.instantiateClass(type) : bean;
    }

    private @Nullable Class<?> targetClass(String name) {
        Class<?> type = AutoProxyUtils.determineTargetClass(beanFactory, name);
        if (type != null && ScopedObject.class.isAssignableFrom(type)) {
            Class<?> scoped =
                    AutoProxyUtils.determineTargetClass(beanFactory, ScopedProxyUtils.getTargetBeanName(name));
            return scoped == null ? type : scoped;
        }
        return type;
    }

    /** Returns false for what a factory bean makes, even if it has been made. */
    private boolean isCreated(String name) {
        return beanFactory.containsSingleton(name) && !beanFactory.isFactoryBean(name);
    }
}
