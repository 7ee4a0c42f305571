package dev.pgworker.autoconfigure;

import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.util.StringUtils;

import dev.pgworker.Worker;
import dev.pgworker.WorkerSettings;
import dev.pgworker.flow.JobFlows;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.limit.JobLimits;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.step.JobSignals;

/**
 * One of an application's workers, with the beans that add and administer its jobs. All returned objects are beans,
 * which are created on demand. Thread-safe.
 *
 * @since 0.1.0
 */
public final class WorkerInstance {

    private final String name;
    private final BeanFactory beans;
    private final boolean autoStartup;

    WorkerInstance(String name, BeanFactory beans, boolean autoStartup) {
        this.name = name;
        this.beans = beans;
        this.autoStartup = autoStartup;
    }

    /** Returns the name in {@code pgworker.instances.<name>}, or {@code "default"}. */
    public String name() {
        return name;
    }

    /** Returns the scheduler that adds its jobs. */
    public JobScheduler jobScheduler() {
        return bean(JobScheduler.class);
    }

    /** Returns what reads its jobs. */
    public JobQueries jobQueries() {
        return bean(JobQueries.class);
    }

    /** Returns what changes its jobs. */
    public JobChanges jobChanges() {
        return bean(JobChanges.class);
    }

    /** Returns what operates the workers of its schema. */
    public WorkerOperations workerOperations() {
        return bean(WorkerOperations.class);
    }

    /** Returns the recurring jobs of its schema, and of its own crontab. */
    public RecurringJobs recurringJobs() {
        return bean(RecurringJobs.class);
    }

    /** Returns the limits of its database. */
    public JobLimits jobLimits() {
        return bean(JobLimits.class);
    }

    /** Returns what sends signals to its jobs. */
    public JobSignals jobSignals() {
        return bean(JobSignals.class);
    }

    /** Returns what adds flows to its jobs. */
    public JobFlows jobFlows() {
        return bean(JobFlows.class);
    }

    /** Returns the data source whose database holds its jobs. */
    public DataSource dataSource() {
        return beans.getBean(InstanceBeans.CLIENT_FACTORY, ClientFactory.class)
                .database(name)
                .dataSource();
    }

    /** Returns the schema that holds its jobs. */
    public WorkerSchema schema() {
        return bean(WorkerSchema.class);
    }

    /** Returns the initializer that migrates the schema. */
    public SchemaMigrator schemaMigrator() {
        return bean(SchemaMigrator.class);
    }

    WorkerSchemaInitializer schemaInitializer() {
        return bean(WorkerSchemaInitializer.class);
    }

    /** Returns the settings of the worker. */
    public WorkerSettings settings() {
        return bean(WorkerSettings.class);
    }

    /** Returns whether the worker is started with the application. */
    public boolean autoStartup() {
        return autoStartup;
    }

    /**
     * Returns the worker, or null if the application only adds jobs. If called before all beans exist, the worker lacks
     * handlers whose classes are not known yet, and startup fails.
     */
    public @Nullable Worker worker() {
        if (isDefault()) {
            return beans.getBeanProvider(Worker.class).getIfUnique();
        }
        String bean = beanName(name, Worker.class);
        return beans.containsBean(bean) ? beans.getBean(bean, Worker.class) : null;
    }

    private <T> T bean(Class<T> type) {
        return isDefault() ? beans.getBean(type) : beans.getBean(beanName(name, type), type);
    }

    private boolean isDefault() {
        return name.equals(WorkerInstances.DEFAULT);
    }

    /** Returns the name of an instance's bean, such as {@code nightlyReportsJobScheduler}. */
    static String beanName(String instance, Class<?> type) {
        StringBuilder name = new StringBuilder();
        for (String word : instance.split("-", -1)) {
            name.append(name.isEmpty() ? word : StringUtils.capitalize(word));
        }
        return name.append(type.getSimpleName()).toString();
    }

    @Override
    public String toString() {
        return "WorkerInstance[" + name + "]";
    }
}
