package dev.pgworker.autoconfigure;

import java.util.Map;

import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.beans.factory.support.AutowireCandidateQualifier;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.beans.factory.support.RootBeanDefinition;
import org.springframework.context.EnvironmentAware;
import org.springframework.context.annotation.ImportBeanDefinitionRegistrar;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotationMetadata;

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
 * Registers the beans of {@code pgworker.instances.<name>}: each is injected with the qualifier {@code name}, and never without.
 * They are made by a method of a factory, so that they can be registered ahead of time, too.
 */
abstract class InstanceBeans implements ImportBeanDefinitionRegistrar, EnvironmentAware {

    static final String CLIENT_FACTORY = "workerClientFactory";
    static final String WORKER_FACTORY = "workerFactory";
    static final String ASSEMBLY = "workerAssembly";

    private @Nullable Environment environment;

    @Override
    public void setEnvironment(Environment environment) {
        this.environment = environment;
    }

    @Override
    public void registerBeanDefinitions(AnnotationMetadata importing, BeanDefinitionRegistry registry) {
        if (environment != null) {
            for (String instance : InstanceProperties.names(environment)) {
                registerAll(instance, environment, registry);
            }
        }
    }

    abstract void registerAll(String instance, Environment environment, BeanDefinitionRegistry registry);

    static void register(
            String instance, Class<?> type, String factory, String method, BeanDefinitionRegistry registry) {
        RootBeanDefinition definition = new RootBeanDefinition(type);
        definition.setFactoryBeanName(factory);
        definition.setFactoryMethodName(method);
        definition.getConstructorArgumentValues().addIndexedArgumentValue(0, instance);
        definition.setDefaultCandidate(false);
        definition.addQualifier(new AutowireCandidateQualifier(Qualifier.class, instance));
        definition.setLazyInit(type == Worker.class);
        registry.registerBeanDefinition(WorkerInstance.beanName(instance, type), definition);
    }

    /** What adds and administers jobs. */
    static final class OfClients extends InstanceBeans {

        private static final Map<Class<?>, String> METHODS = Map.ofEntries(
                Map.entry(WorkerSchema.class, "workerSchema"),
                Map.entry(WorkerSettings.class, "workerSettings"),
                Map.entry(SchemaMigrator.class, "schemaMigrator"),
                Map.entry(WorkerSchemaInitializer.class, "schemaInitializer"),
                Map.entry(JobScheduler.class, "jobScheduler"),
                Map.entry(JobQueries.class, "jobQueries"),
                Map.entry(JobChanges.class, "jobChanges"),
                Map.entry(WorkerOperations.class, "workerOperations"),
                Map.entry(RecurringJobs.class, "recurringJobs"),
                Map.entry(JobLimits.class, "jobLimits"),
                Map.entry(JobSignals.class, "jobSignals"),
                Map.entry(JobFlows.class, "jobFlows"));

        @Override
        void registerAll(String instance, Environment environment, BeanDefinitionRegistry registry) {
            METHODS.forEach((type, method) -> register(instance, type, CLIENT_FACTORY, method, registry));
        }
    }

    /** What runs jobs, unless that is disabled for the instance. */
    static final class OfWorkers extends InstanceBeans {

        @Override
        void registerAll(String instance, Environment environment, BeanDefinitionRegistry registry) {
            if (InstanceProperties.bind(environment, instance).enabled()) {
                register(instance, Worker.class, WORKER_FACTORY, "worker", registry);
                register(instance, WorkerLifecycle.class, ASSEMBLY, "lifecycle", registry);
            }
        }
    }
}
