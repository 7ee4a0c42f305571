package dev.pgworker.autoconfigure;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import javax.sql.DataSource;

import org.slf4j.Logger;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.core.env.Environment;

import dev.pgworker.Worker;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.task.TaskRegistration;

/** Has the workers of an application built when all its singletons exist, and looks whether they can run. */
final class WorkerAssembly {

    private static final Logger log = WorkerLog.of(WorkerAssembly.class);

    private final ConfigurableListableBeanFactory beans;
    private final WorkerInstances instances;
    private final ClientFactory clients;
    private final WorkerFactory factory;
    private final TaskAssignment assignment;
    private final HandlerBeans handlerBeans;
    private final Environment environment;

    WorkerAssembly(
            ConfigurableListableBeanFactory beans,
            WorkerInstances instances,
            ClientFactory clients,
            WorkerFactory factory,
            HandlerBeans handlerBeans,
            Environment environment) {
        this.beans = beans;
        this.instances = instances;
        this.clients = clients;
        this.factory = factory;
        assignment = new TaskAssignment(instances.properties());
        this.handlerBeans = handlerBeans;
        this.environment = environment;
    }

    /** Returns the lifecycle of a worker. That of the default one also starts and stops the application's own workers. */
    WorkerLifecycle lifecycle(String name) {
        return new WorkerLifecycle(
                () -> name.equals(WorkerInstances.DEFAULT) ? buildAll() : List.of(build(name)),
                instances.get(name).autoStartup(),
                () -> instances.get(name).schemaInitializer().lookAfterStart());
    }

    /** Returns the default worker and those that the application has made itself; looks at the connections of all. */
    private List<Worker> buildAll() {
        boolean enabled = instances.properties(WorkerInstances.DEFAULT).enabled();
        List<Worker> workers = new ArrayList<>(enabled ? List.of(build(WorkerInstances.DEFAULT)) : List.of());
        Set<String> ofInstances = instances.all().stream()
                .map(instance -> WorkerInstance.beanName(instance.name(), Worker.class))
                .collect(Collectors.toSet());
        for (String bean : beans.getBeanNamesForType(Worker.class, false, true)) {
            Worker worker = beans.getBean(bean, Worker.class);
            if (!workers.contains(worker) && !ofInstances.contains(bean)) {
                workers.add(worker);
            }
        }
        checkConnections();
        return workers;
    }

    private Worker build(String name) {
        boolean builtEarly = handlerBeans.isSearched();
        Worker worker = instances.get(name).worker();
        if (worker == null) {
            throw new WorkerConfigurationException(
                    "There are several Worker beans, and none of them is the default one: "
                            + String.join(", ", beans.getBeanNamesForType(Worker.class)) + ".",
                    "Mark with @Primary the one that health, metrics and endpoint show, or configure pgworker.instances"
                            + " instead of beans.");
        }
        if (!factory.hasMade(worker)) {
            warnOfUnserved(name, worker);
        } else if (builtEarly) {
            handlerBeans.requireComplete(worker.tasks(), handler -> assignment.serves(name, handler));
        }
        ShutdownTime.check(WorkerInstances.prefix(name), instances.get(name).settings(), environment);
        return worker;
    }

    /** A worker that the application makes itself has the tasks that it was built with, and no others. */
    private void warnOfUnserved(String name, Worker own) {
        Set<String> unserved = handlerBeans.find().stream()
                .filter(handler -> assignment.serves(name, handler))
                .map(TaskRegistration::identifier)
                .filter(task -> !own.tasks().contains(task))
                .collect(Collectors.toCollection(TreeSet::new));
        if (!unserved.isEmpty()) {
            log.warn(
                    "The application's own Worker bean takes the place of the auto-configured one, and does not serve the"
                            + " @JobHandler methods of {}: their jobs wait. Declare a WorkerBuilderCustomizer instead of a"
                            + " Worker, or configure pgworker.instances for a further one",
                    unserved);
        }
    }

    /** What several workers take from one pool adds up. */
    private void checkConnections() {
        IdentityHashMap<DataSource, List<Worker>> byPool = new IdentityHashMap<>();
        for (WorkerInstance instance : instances.all()) {
            Worker worker = instance.worker();
            if (worker != null && WorkerLifecycle.hasWork(worker)) {
                byPool.computeIfAbsent(clients.database(instance.name()).dataSource(), pool -> new ArrayList<>())
                        .add(worker);
            }
        }
        byPool.forEach(ConnectionPool::check);
    }
}
