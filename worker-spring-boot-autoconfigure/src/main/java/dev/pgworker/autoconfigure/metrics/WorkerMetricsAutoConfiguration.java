package dev.pgworker.autoconfigure.metrics;

import java.util.Set;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;

import io.micrometer.core.instrument.MeterRegistry;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.util.function.SingletonSupplier;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.WorkerAutoConfiguration;
import dev.pgworker.autoconfigure.WorkerSchemaInitializer;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.JobAdmin;
import dev.pgworker.job.JobScheduler;

/**
 * Measures jobs, workers and the backlog with Micrometer.
 *
 * @since 0.1.0
 */
@AutoConfiguration(
        after = WorkerAutoConfiguration.class,
        afterName = "org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration")
@ConditionalOnClass(MeterRegistry.class)
@ConditionalOnBean({MeterRegistry.class, WorkerSchemaInitializer.class})
@ConditionalOnProperty(name = "worker.metrics.enabled", matchIfMissing = true)
@EnableConfigurationProperties(WorkerMetricsProperties.class)
public final class WorkerMetricsAutoConfiguration {

    @Bean
    JobMetrics workerJobMetrics(MeterRegistry registry) {
        return new JobMetrics(registry);
    }

    @Bean(defaultCandidate = false)
    @Qualifier("workerDirectListener") WorkerEventListener workerEventMetrics(JobMetrics metrics) {
        return metrics::observe;
    }

    @Bean(defaultCandidate = false)
    @Qualifier("workerJobSchedulerDecorator") UnaryOperator<JobScheduler> workerEnqueuedMetrics(ObjectProvider<JobMetrics> metrics) {
        Supplier<JobMetrics> whenNeeded = SingletonSupplier.of(metrics::getObject);
        return scheduler -> new CountingJobScheduler(scheduler, whenNeeded);
    }

    /** Waits for the worker, which is built when all beans exist. */
    @Bean
    SmartInitializingSingleton workerGauges(
            ObjectProvider<Worker> provider,
            MeterRegistry registry,
            JobMetrics metrics,
            WorkerMetricsProperties properties) {
        return () -> {
            Worker worker = provider.getIfAvailable();
            Set<String> served = worker == null ? Set.of() : worker.tasks();
            metrics.serve(served, properties.tasks());
            if (worker != null && !served.isEmpty()) {
                WorkerGauges.register(worker, registry);
            }
        };
    }

    @Bean
    BacklogSampler workerBacklogSampler(JobAdmin admin, WorkerMetricsProperties properties, MeterRegistry registry) {
        return new BacklogSampler(admin, properties.interval(), registry);
    }
}
