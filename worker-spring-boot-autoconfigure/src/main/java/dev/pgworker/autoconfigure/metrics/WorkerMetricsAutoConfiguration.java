package dev.pgworker.autoconfigure.metrics;

import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Supplier;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.observation.DefaultMeterObservationHandler;
import io.micrometer.observation.ObservationRegistry;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Fallback;
import org.springframework.util.function.SingletonSupplier;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.WorkerAutoConfiguration;
import dev.pgworker.autoconfigure.WorkerInstance;
import dev.pgworker.autoconfigure.WorkerInstances;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.JobScheduler;

/**
 * Auto-configuration for Micrometer metrics of jobs, workers and the backlog.
 *
 * @since 0.1.0
 */
@AutoConfiguration(
        after = WorkerAutoConfiguration.class,
        afterName = "org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration")
@ConditionalOnClass(MeterRegistry.class)
@ConditionalOnBean({MeterRegistry.class, WorkerInstances.class})
@ConditionalOnProperty(name = "pgworker.metrics.enabled", matchIfMissing = true)
@EnableConfigurationProperties(WorkerMetricsProperties.class)
public final class WorkerMetricsAutoConfiguration {

    @Bean
    WorkerMetrics workerMetrics(MeterRegistry registry) {
        return new WorkerMetrics(registry);
    }

    @Bean(defaultCandidate = false)
    @Qualifier("workerDirectListener") Function<String, WorkerEventListener> workerEventMetrics(WorkerMetrics metrics) {
        return worker -> metrics.of(worker)::observe;
    }

    @Bean(defaultCandidate = false)
    @Qualifier("workerJobSchedulerDecorator") BiFunction<String, JobScheduler, JobScheduler> workerEnqueuedMetrics(ObjectProvider<WorkerMetrics> metrics) {
        return (worker, scheduler) -> new CountingJobScheduler(
                scheduler, SingletonSupplier.of(() -> metrics.getObject().of(worker)));
    }

    /** Times executions of periodic tasks, and does not trace them: there is one each second. No bean, which would be given Boot's handlers. */
    @Bean(defaultCandidate = false)
    @Qualifier("workerTaskObservations") Supplier<ObservationRegistry> workerTaskObservations(MeterRegistry registry) {
        return SingletonSupplier.of(() -> {
            ObservationRegistry observations = ObservationRegistry.create();
            observations.observationConfig().observationHandler(new DefaultMeterObservationHandler(registry));
            return observations;
        });
    }

    /** Waits for the workers, which are built when all beans exist. */
    @Bean
    SmartInitializingSingleton workerGauges(
            WorkerInstances instances,
            MeterRegistry registry,
            WorkerMetrics metrics,
            WorkerMetricsProperties properties) {
        return () -> {
            for (WorkerInstance instance : instances.all()) {
                Worker worker = instance.worker();
                Set<String> served = worker == null ? Set.of() : worker.tasks();
                metrics.of(instance.name()).serve(served, properties.tasks());
                if (worker != null && !served.isEmpty()) {
                    WorkerGauges.register(instance.name(), worker, registry);
                }
            }
        };
    }

    /** Whoever injects the one holder of tasks that there is without a worker gets that one. */
    @Bean
    @Fallback
    BacklogSampler workerBacklogSampler(
            WorkerInstances instances, WorkerMetricsProperties properties, MeterRegistry registry) {
        return new BacklogSampler(instances.all(), properties.interval(), registry);
    }
}
