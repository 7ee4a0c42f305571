package dev.pgworker.autoconfigure;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.stream.Stream;
import javax.sql.DataSource;

import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;

import dev.pgworker.Worker;
import dev.pgworker.WorkerClient;
import dev.pgworker.WorkerSettings;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.flow.JobFlows;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.limit.JobLimits;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.step.JobSignals;
import dev.pgworker.task.JobRecoveryHandler;
import dev.pgworker.task.PayloadCodec;

/**
 * Makes what adds and administers the jobs of a worker: each method returns the bean of the worker with the given name, which
 * is made of others of its beans.
 */
final class ClientFactory {

    /** Decorates a {@link JobScheduler}: a {@code BiFunction} of the worker's name and what to decorate. */
    static final String DECORATOR = "workerJobSchedulerDecorator";

    /** Makes a direct listener: a {@code Function} of the worker's name. */
    static final String DIRECT_LISTENER = "workerDirectListener";

    private final ConfigurableListableBeanFactory beans;
    private final WorkerInstances instances;
    private final Collaborators collaborators;
    private final DatabaseChoice choice;
    private final Map<String, WorkerDatabase> databases = new HashMap<>();

    ClientFactory(ConfigurableListableBeanFactory beans, WorkerInstances instances) {
        this.beans = beans;
        this.instances = instances;
        collaborators = new Collaborators(beans, instances.properties().keySet());
        choice = new DatabaseChoice(beans);
    }

    /** Chosen once: a bean that is not a singleton would be another one each time. */
    synchronized WorkerDatabase database(String worker) {
        WorkerDatabase chosen = databases.get(worker);
        if (chosen == null) {
            chosen = choose(worker);
            databases.put(worker, chosen);
        }
        return chosen;
    }

    private WorkerDatabase choose(String worker) {
        String own = properties(worker).dataSource();
        if (worker.equals(WorkerInstances.DEFAULT)) {
            return choice.ofDefault(properties(worker));
        }
        return own == null
                ? database(WorkerInstances.DEFAULT)
                : choice.named(WorkerInstances.prefix(worker) + ".data-source", own);
    }

    private WorkerProperties properties(String worker) {
        return instances.properties(worker);
    }

    WorkerSchema workerSchema(String worker) {
        return properties(worker).workerSchema(WorkerInstances.prefix(worker));
    }

    WorkerSettings workerSettings(String worker) {
        return properties(worker).workerSettings(WorkerInstances.prefix(worker));
    }

    DefaultsOfTasks defaultsOfTasks(String worker) {
        return new DefaultsOfTasks(
                WorkerInstances.prefix(worker), properties(worker).taskDefaults());
    }

    SchemaMigrator schemaMigrator(String worker) {
        WorkerDatabase database = database(worker);
        WorkerProperties.Schema credentials = properties(worker).schema();
        DataSource separate = SeparateConnections.create(
                WorkerInstances.prefix(worker) + ".schema",
                credentials.url(),
                credentials.user(),
                credentials.password(),
                database);
        return new SchemaMigrator(
                separate == null ? database.dataSource() : separate,
                instances.get(worker).schema(),
                credentials.peerIndexes());
    }

    WorkerSchemaInitializer schemaInitializer(String worker) {
        WorkerProperties.Schema schema = properties(worker).schema();
        return new WorkerSchemaInitializer(
                instances.get(worker).schemaMigrator(),
                schema.mode(),
                schema.startupTimeout(),
                schema.url() == null
                        ? () -> {}
                        : new SchemaMigrator(
                                database(worker).dataSource(),
                                instances.get(worker).schema())::checkConnections);
    }

    /**
     * Needs the initializer alone, so that an application's migrations in Java may add jobs. It may exist long before other
     * beans: what a decorator needs besides is to be fetched when the first job is added.
     */
    @SuppressWarnings("unchecked")
    JobScheduler jobScheduler(String worker) {
        WorkerSchemaInitializer unused = instances.get(worker).schemaInitializer();
        JobScheduler scheduler = WorkerClient.jobScheduler(
                database(worker).dataSource(),
                instances.get(worker).schema(),
                beans.getBean(PayloadCodec.class),
                () -> collaborators.of(worker, ScheduleInterceptor.class),
                instances.get(worker).settings().results());
        DefaultsOfTasks defaults = defaultsOfTasks(worker);
        if (!defaults.isEmpty()) {
            scheduler = new CompletingJobScheduler(scheduler, defaults);
        }
        for (BiFunction<String, JobScheduler, JobScheduler> decorator :
                collaborators.internal(DECORATOR, BiFunction.class)) {
            scheduler = decorator.apply(worker, scheduler);
        }
        return scheduler;
    }

    JobQueries jobQueries(String worker) {
        WorkerInstance instance = instances.get(worker);
        WorkerSchemaInitializer unused = instance.schemaInitializer();
        return WorkerClient.jobQueries(
                database(worker).dataSource(),
                instance.schema(),
                instance.settings().recovery());
    }

    JobChanges jobChanges(String worker) {
        WorkerInstance instance = instances.get(worker);
        WorkerSchemaInitializer unused = instance.schemaInitializer();
        return WorkerClient.jobChanges(database(worker).dataSource(), instance.schema(), () -> listeners(worker));
    }

    /** Looks up handlers and listeners when they are needed: they may well use the operations. */
    WorkerOperations workerOperations(String worker) {
        WorkerInstance instance = instances.get(worker);
        WorkerSchemaInitializer unused = instance.schemaInitializer();
        return WorkerClient.workerOperations(
                database(worker).dataSource(),
                instance.schema(),
                instance.settings().recovery(),
                () -> collaborators.of(worker, JobRecoveryHandler.class),
                () -> listeners(worker));
    }

    private List<WorkerEventListener> listeners(String worker) {
        return Stream.concat(collaborators.of(worker, WorkerEventListener.class).stream(), directListeners(worker))
                .toList();
    }

    @SuppressWarnings("unchecked")
    Stream<WorkerEventListener> directListeners(String worker) {
        return collaborators.internal(DIRECT_LISTENER, Function.class).stream()
                .map(maker -> ((Function<String, WorkerEventListener>) maker).apply(worker));
    }

    /** Asks for the worker only when it is used, so that it can be injected before the worker's handlers exist. */
    RecurringJobs recurringJobs(String worker) {
        WorkerInstance instance = instances.get(worker);
        WorkerSchemaInitializer unused = instance.schemaInitializer();
        return WorkerClient.recurringJobs(
                database(worker).dataSource(),
                instance.schema(),
                beans.getBean(PayloadCodec.class),
                instance.jobScheduler(),
                () -> {
                    Worker running = instance.worker();
                    return running == null ? List.of() : running.cronItems();
                });
    }

    JobFlows jobFlows(String worker) {
        WorkerInstance instance = instances.get(worker);
        WorkerSchemaInitializer unused = instance.schemaInitializer();
        return WorkerClient.jobFlows(
                database(worker).dataSource(),
                instance.schema(),
                beans.getBean(PayloadCodec.class),
                instance.jobScheduler());
    }

    JobLimits jobLimits(String worker) {
        WorkerInstance instance = instances.get(worker);
        WorkerSchemaInitializer unused = instance.schemaInitializer();
        return WorkerClient.jobLimits(database(worker).dataSource(), instance.schema(), () -> listeners(worker));
    }

    JobSignals jobSignals(String worker) {
        WorkerInstance instance = instances.get(worker);
        WorkerSchemaInitializer unused = instance.schemaInitializer();
        return WorkerClient.jobSignals(
                database(worker).dataSource(),
                instance.schema(),
                beans.getBean(PayloadCodec.class),
                instance.settings().steps());
    }

    Collaborators collaborators() {
        return collaborators;
    }

    DatabaseChoice choice() {
        return choice;
    }
}
