package dev.pgworker.autoconfigure;

import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.context.ApplicationEvent;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.PayloadApplicationEvent;
import org.springframework.context.event.GenericApplicationListener;
import org.springframework.core.MethodIntrospector;
import org.springframework.core.ResolvableType;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.annotation.AnnotationUtils;
import org.springframework.util.ClassUtils;

import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.task.DurableEventListener;
import dev.pgworker.task.JobHandlerMethods;
import dev.pgworker.task.TaskRegistration;

/**
 * Adds the jobs of events for which there are {@link DurableEventListener}s, whether or not this application runs them. Without
 * such listeners the application's events do not pass here.
 */
final class DurableEvents implements SmartInitializingSingleton {

    private final ConfigurableApplicationContext context;
    private final HandlerBeans handlers;
    private final WorkerInstances instances;
    private final TaskAssignment assignment;

    DurableEvents(ConfigurableApplicationContext context, HandlerBeans handlers, WorkerInstances instances) {
        this.context = context;
        this.handlers = handlers;
        this.instances = instances;
        assignment = new TaskAssignment(instances.properties());
    }

    @Override
    public void afterSingletonsInstantiated() {
        Map<String, DurableListener> found = new LinkedHashMap<>();
        for (Class<?> type : handlers.classes()) {
            for (DurableListener listener : listeners(type)) {
                DurableListener other = found.putIfAbsent(listener.id(), listener);
                if (other != null) {
                    throw new WorkerConfigurationException(
                            "Two durable event listeners have the identifier \"" + listener.id() + "\": "
                                    + other.source() + " and " + listener.source() + ".",
                            "Give each an identifier of its own.");
                }
            }
        }
        if (!found.isEmpty()) {
            context.addApplicationListener(new Adder(List.copyOf(found.values())));
        }
    }

    private List<DurableListener> listeners(Class<?> beanClass) {
        Class<?> type = ClassUtils.getUserClass(beanClass);
        if (!AnnotationUtils.isCandidateClass(type, DurableEventListener.class)) {
            return List.of();
        }
        Map<Method, DurableEventListener> methods = methods(type);
        if (methods.isEmpty()) {
            return List.of();
        }
        Map<String, TaskRegistration> tasks = new LinkedHashMap<>();
        JobHandlerMethods.find(type, () -> type, policy -> (job, error) -> Duration.ZERO)
                .forEach(task -> tasks.put(task.identifier(), task));
        List<DurableListener> listeners = new ArrayList<>();
        methods.forEach((method, annotation) -> listeners.add(new DurableListener(
                method,
                annotation,
                Objects.requireNonNull(tasks.get(annotation.value())),
                context.getBeanFactory(),
                handlers::resolve)));
        listeners.sort(Comparator.comparing(DurableListener::source));
        return listeners;
    }

    /** A class that mentions another one that is not there cannot be read; {@link HandlerBeans} tells so. */
    private static Map<Method, DurableEventListener> methods(Class<?> type) {
        try {
            return MethodIntrospector.selectMethods(
                    type,
                    (Method method) -> AnnotatedElementUtils.findMergedAnnotation(method, DurableEventListener.class));
        } catch (IllegalStateException | LinkageError e) {
            return Map.of();
        }
    }

    /** Listens on the thread that publishes, in its transaction, whatever the multicaster does with other listeners. */
    private final class Adder implements GenericApplicationListener {

        private final List<DurableListener> listeners;

        Adder(List<DurableListener> listeners) {
            this.listeners = listeners;
        }

        @Override
        public boolean supportsEventType(ResolvableType event) {
            ResolvableType payload = event.as(PayloadApplicationEvent.class).getGeneric();
            return PayloadApplicationEvent.class.isAssignableFrom(event.toClass())
                    && listeners.stream().anyMatch(listener -> listener.accepts(payload));
        }

        @Override
        public boolean supportsAsyncExecution() {
            return false;
        }

        @Override
        public void onApplicationEvent(ApplicationEvent event) {
            PayloadApplicationEvent<?> published = (PayloadApplicationEvent<?>) event;
            ResolvableType type = published.getResolvableType().getGeneric();
            Map<JobScheduler, List<JobRequest>> jobs = new LinkedHashMap<>();
            for (DurableListener listener : listeners) {
                if (listener.accepts(type)) {
                    listener.job(published.getPayload())
                            .ifPresent(job -> jobs.computeIfAbsent(scheduler(listener), any -> new ArrayList<>())
                                    .add(job));
                }
            }
            jobs.forEach(JobScheduler::addJobs);
        }

        /** If several workers list the task, the first one's. */
        private JobScheduler scheduler(DurableListener listener) {
            return instances.all().stream()
                    .filter(instance -> assignment.serves(instance.name(), listener.task()))
                    .findFirst()
                    .orElseGet(() -> instances.get(WorkerInstances.DEFAULT))
                    .jobScheduler();
        }
    }
}
