package dev.pgworker.autoconfigure;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.stream.Collectors;

import io.micrometer.observation.ObservationRegistry;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.thread.Threading;
import org.springframework.core.env.Environment;
import org.springframework.core.task.SimpleAsyncTaskExecutor;
import org.springframework.transaction.PlatformTransactionManager;

import dev.pgworker.Worker;
import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.Crontab;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.limit.Limit;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.task.DeclaredTask;
import dev.pgworker.task.ForbiddenFlags;
import dev.pgworker.task.JobInterceptor;
import dev.pgworker.task.JobRecoveryHandler;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.TaskRegistration;

/** Makes the workers of an application from its properties, handlers and other beans. */
final class WorkerFactory {

    private static final String HANDLER_THREADS = "worker-job-";

    private final ClientFactory clients;
    private final WorkerInstances instances;
    private final HandlerBeans handlerBeans;
    private final ObjectProvider<TaskRegistration> registrations;
    private final PayloadCodec codec;
    private final Environment environment;
    private final ObjectProvider<Supplier<ObservationRegistry>> observations;
    private final TaskAssignment assignment;
    private final Set<Worker> made = ConcurrentHashMap.newKeySet();

    WorkerFactory(
            ClientFactory clients,
            WorkerInstances instances,
            HandlerBeans handlerBeans,
            ObjectProvider<TaskRegistration> registrations,
            PayloadCodec codec,
            Environment environment,
            ObjectProvider<Supplier<ObservationRegistry>> observations) {
        this.clients = clients;
        this.instances = instances;
        this.handlerBeans = handlerBeans;
        this.registrations = registrations;
        this.codec = codec;
        this.environment = environment;
        this.observations = observations;
        assignment = new TaskAssignment(instances.properties());
    }

    /** Returns the worker of this name, not started. */
    Worker worker(String name) {
        WorkerInstance instance = instances.get(name);
        WorkerProperties properties = instances.properties(name);
        WorkerDatabase database = clients.database(name);
        Collaborators collaborators = clients.collaborators();
        List<TaskRegistration> handlers = new ArrayList<>(handlerBeans.find());
        handlers.addAll(registrations.orderedStream().toList());
        assignment.requireComplete(handlers);
        DefaultsOfTasks defaults = clients.defaultsOfTasks(name);
        defaults.tellUnknown(knownTasks(handlers));
        defaults.tellUnread(environment);
        Worker.Builder builder = Worker.builder(database.dataSource())
                .schema(instance.schema())
                .settings(instance.settings())
                .codec(codec)
                .jobScheduler(instance.jobScheduler())
                .privateDataSource(SeparateConnections.like(database.dataSource()))
                .transactionManager(transactionManager(name, properties, database))
                .crontab(crontab(name, properties))
                .crontabZone(properties.crontabZone())
                .limits(limits(name, properties, handlers))
                .tasks(handlers.stream()
                        .filter(task -> assignment.serves(name, task))
                        .map(defaults::complete)
                        .toList())
                .declaredTasks(declaredTasks(handlers))
                .name(name.equals(WorkerInstances.DEFAULT) ? "worker" : "worker " + name)
                .observationRegistry(observationRegistry());
        List<ForbiddenFlags> flags = collaborators.of(name, ForbiddenFlags.class);
        // A worker that has nobody to ask claims an announced job at once.
        if (!flags.isEmpty() || !properties.forbiddenFlags().isEmpty()) {
            builder.forbiddenFlags(union(properties.forbiddenFlags(), flags));
        }
        WorkerProperties.Listen listen = properties.listen();
        builder.listenDataSource(SeparateConnections.create(
                WorkerInstances.prefix(name) + ".listen", listen.url(), listen.user(), listen.password(), database));
        if (Threading.VIRTUAL.isActive(environment)) {
            SimpleAsyncTaskExecutor executor = new SimpleAsyncTaskExecutor(HANDLER_THREADS);
            executor.setVirtualThreads(true);
            builder.handlerExecutor(executor);
        }
        collaborators.of(name, WorkerEventListener.class).forEach(builder::listener);
        clients.directListeners(name).forEach(builder::directListener);
        collaborators.of(name, JobInterceptor.class).forEach(builder::jobInterceptor);
        collaborators.of(name, ScheduleInterceptor.class).forEach(builder::scheduleInterceptor);
        collaborators.of(name, JobRecoveryHandler.class).forEach(builder::recoveryHandler);
        collaborators.of(name, WorkerBuilderCustomizer.class).forEach(customizer -> customizer.customize(builder));
        Worker worker = builder.build();
        made.add(worker);
        return worker;
    }

    private ObservationRegistry observationRegistry() {
        Supplier<ObservationRegistry> registry = observations.getIfAvailable();
        return registry == null ? ObservationRegistry.NOOP : registry.get();
    }

    /** Returns false for a worker that the application has made itself. */
    boolean hasMade(Worker worker) {
        return made.contains(worker);
    }

    private @Nullable PlatformTransactionManager transactionManager(
            String worker, WorkerProperties properties, WorkerDatabase database) {
        boolean ofDefault = worker.equals(WorkerInstances.DEFAULT) || properties.dataSource() == null;
        return clients.choice()
                .transactionManager(
                        database.dataSource(),
                        WorkerInstances.prefix(worker) + ".transaction-manager",
                        properties.transactionManager(),
                        ofDefault);
    }

    private Crontab crontab(String worker, WorkerProperties properties) {
        Collaborators collaborators = clients.collaborators();
        return new CrontabSources(WorkerInstances.prefix(worker), properties)
                .methods(
                        handlerBeans.classes(),
                        handler -> assignment.serves(worker, handler.value(), handler.worker()),
                        handlerBeans::resolve)
                .beans(collaborators.onlyOf(worker, CronItem.class), collaborators.onlyOf(worker, Schedule.class))
                .crontab();
    }

    private Set<String> knownTasks(List<TaskRegistration> handlers) {
        Set<String> known = new HashSet<>();
        handlers.forEach(handler -> known.add(handler.identifier()));
        handlerBeans
                .declaredTasks()
                .forEach(declared -> known.add(declared.task().identifier()));
        return known;
    }

    private List<Limit> limits(String worker, WorkerProperties properties, List<TaskRegistration> handlers) {
        Set<String> served = handlers.stream()
                .filter(task -> assignment.serves(worker, task))
                .map(TaskRegistration::identifier)
                .collect(Collectors.toSet());
        return new LimitSources(handlerBeans.classes(), handlerBeans::resolve)
                .limits(
                        WorkerInstances.prefix(worker) + ".limits",
                        properties.limits(),
                        served,
                        clients.collaborators().onlyOf(worker, Limit.class));
    }

    /** Returns the constants of tasks, but where several workers have a handler: each constant is meant for one of them. */
    private List<DeclaredTask> declaredTasks(List<TaskRegistration> handlers) {
        Set<String> once = new HashSet<>();
        Set<String> often = new HashSet<>();
        handlers.stream()
                .map(TaskRegistration::identifier)
                .filter(task -> !once.add(task))
                .forEach(often::add);
        return handlerBeans.declaredTasks().stream()
                .filter(declared -> !often.contains(declared.task().identifier()))
                .toList();
    }

    private static ForbiddenFlags union(List<String> fixed, List<ForbiddenFlags> suppliers) {
        if (suppliers.isEmpty()) {
            return () -> fixed;
        }
        return () -> {
            Set<String> flags = new LinkedHashSet<>(fixed);
            suppliers.forEach(supplier -> flags.addAll(supplier.current()));
            return flags;
        };
    }
}
