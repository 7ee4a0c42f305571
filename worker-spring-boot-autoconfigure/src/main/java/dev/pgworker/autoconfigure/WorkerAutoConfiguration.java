package dev.pgworker.autoconfigure;

import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.env.Environment;

import dev.pgworker.Worker;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.TaskRegistration;

/**
 * Auto-configuration for running jobs, unless disabled: the worker, and one for each of {@code worker.instances}.
 *
 * @since 0.1.0
 */
@AutoConfiguration(after = JobSchedulerAutoConfiguration.class)
@ConditionalOnBean(WorkerInstances.class)
@Conditional(OnWorkerCondition.class)
@Import(InstanceBeans.OfWorkers.class)
public final class WorkerAutoConfiguration {

    @Bean
    HandlerBeans workerHandlerBeans(ConfigurableListableBeanFactory beanFactory) {
        return new HandlerBeans(beanFactory);
    }

    @Bean(InstanceBeans.WORKER_FACTORY)
    WorkerFactory workerFactory(
            ClientFactory clients,
            WorkerInstances instances,
            HandlerBeans handlerBeans,
            ObjectProvider<TaskRegistration> registrations,
            PayloadCodec codec,
            Environment environment) {
        return new WorkerFactory(clients, instances, handlerBeans, registrations, codec, environment);
    }

    @Bean
    @Lazy
    @ConditionalOnMissingBean
    @ConditionalOnProperty(name = "worker.enabled", matchIfMissing = true)
    Worker defaultWorker(WorkerFactory factory) {
        return factory.worker(WorkerInstances.DEFAULT);
    }

    @Bean(InstanceBeans.ASSEMBLY)
    WorkerAssembly workerAssembly(
            ConfigurableListableBeanFactory beans,
            WorkerInstances instances,
            ClientFactory clients,
            WorkerFactory factory,
            HandlerBeans handlerBeans,
            Environment environment) {
        return new WorkerAssembly(beans, instances, clients, factory, handlerBeans, environment);
    }

    @Bean
    WorkerLifecycle workerLifecycle(WorkerAssembly assembly) {
        return assembly.lifecycle(WorkerInstances.DEFAULT);
    }
}
