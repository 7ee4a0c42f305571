package dev.pgworker.autoconfigure;

import java.util.LinkedHashSet;
import java.util.Objects;
import java.util.function.Supplier;
import java.util.stream.Collectors;

import io.micrometer.observation.ObservationRegistry;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Fallback;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.env.Environment;
import org.springframework.scheduling.config.ScheduledTaskHolder;

import dev.pgworker.Worker;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.TaskRegistration;

/**
 * Auto-configuration for running jobs, unless disabled: the worker, and one for each of {@code pgworker.instances}.
 *
 * @since 0.1.0
 */
@AutoConfiguration(after = JobSchedulerAutoConfiguration.class)
@ConditionalOnBean(WorkerInstances.class)
@Conditional(OnWorkerCondition.class)
@Import(InstanceBeans.OfWorkers.class)
public final class WorkerAutoConfiguration {

    @Bean(InstanceBeans.WORKER_FACTORY)
    WorkerFactory workerFactory(
            ClientFactory clients,
            WorkerInstances instances,
            HandlerBeans handlerBeans,
            ObjectProvider<TaskRegistration> registrations,
            PayloadCodec codec,
            Environment environment,
            @Qualifier("workerTaskObservations") ObjectProvider<Supplier<ObservationRegistry>> observations) {
        return new WorkerFactory(clients, instances, handlerBeans, registrations, codec, environment, observations);
    }

    @Bean
    @Lazy
    @ConditionalOnMissingBean
    @ConditionalOnProperty(name = "pgworker.enabled", matchIfMissing = true)
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
    @ConditionalOnBooleanProperty("pgworker.application-events")
    WorkerEventListener workerApplicationEvents(ApplicationEventPublisher publisher) {
        return publisher::publishEvent;
    }

    /** What {@code /actuator/scheduledtasks} shows. Whoever injects the holder of {@code @Scheduled} methods gets that one. */
    @Bean
    @Fallback
    ScheduledTaskHolder workerScheduledTasks(WorkerInstances instances) {
        return () -> instances.all().stream()
                .map(WorkerInstance::worker)
                .filter(Objects::nonNull)
                .flatMap(worker -> worker.scheduledTasks().stream())
                .collect(Collectors.toCollection(LinkedHashSet::new));
    }

    @Bean
    WorkerLifecycle workerLifecycle(WorkerAssembly assembly) {
        return assembly.lifecycle(WorkerInstances.DEFAULT);
    }
}
