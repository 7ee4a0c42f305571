package dev.pgworker.autoconfigure.observation;

import java.util.function.BiFunction;
import java.util.function.Supplier;

import io.micrometer.observation.ObservationRegistry;
import io.micrometer.tracing.Tracer;
import io.micrometer.tracing.propagation.Propagator;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.util.function.SingletonSupplier;

import dev.pgworker.autoconfigure.WorkerAutoConfiguration;
import dev.pgworker.autoconfigure.WorkerInstances;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.task.JobInterceptor;
import dev.pgworker.task.PayloadCodec;

/**
 * Auto-configuration for observing the adding and running of jobs, and for propagating traces from one to the other.
 *
 * @since 0.1.0
 */
@AutoConfiguration(
        after = WorkerAutoConfiguration.class,
        afterName = {
            "org.springframework.boot.micrometer.observation.autoconfigure.ObservationAutoConfiguration",
            "org.springframework.boot.micrometer.tracing.autoconfigure.MicrometerTracingAutoConfiguration",
            "org.springframework.boot.micrometer.tracing.autoconfigure.NoopTracerAutoConfiguration"
        })
@ConditionalOnClass({ObservationRegistry.class, Tracer.class})
@ConditionalOnBean({ObservationRegistry.class, Tracer.class, WorkerInstances.class})
@ConditionalOnProperty(name = "pgworker.observation.enabled", matchIfMissing = true)
@EnableConfigurationProperties(WorkerObservationProperties.class)
public final class WorkerObservationAutoConfiguration {

    @Bean(defaultCandidate = false)
    @Qualifier("workerJobSchedulerDecorator") BiFunction<String, JobScheduler, JobScheduler> workerSchedulingObservations(
            ObjectProvider<ObservationRegistry> registry,
            ObjectProvider<Tracer> tracer,
            ObjectProvider<JobPublishConvention> convention) {
        Supplier<ObservationRegistry> whenNeeded =
                SingletonSupplier.of(() -> registryIfTraced(registry.getObject(), tracer.getObject()));
        return (worker, scheduler) -> new ObservedJobScheduler(scheduler, whenNeeded, convention::getIfAvailable);
    }

    /** Outermost, so that other interceptors run within the span and see the payload without the trace. */
    @Bean
    @Order(Ordered.HIGHEST_PRECEDENCE)
    JobInterceptor workerRunObservations(
            ObservationRegistry registry,
            Tracer tracer,
            ObjectProvider<Propagator> propagators,
            ObjectProvider<JobProcessConvention> convention,
            WorkerObservationProperties properties) {
        return new ObservedRuns(
                registryIfTraced(registry, tracer),
                convention.getIfAvailable(),
                properties.propagate() && areTracesContinued(propagators));
    }

    /** Innermost, so that other interceptors see the payload as the caller gave it. */
    @Bean
    @Order(Ordered.LOWEST_PRECEDENCE)
    @ConditionalOnProperty("pgworker.observation.propagate")
    ScheduleInterceptor workerTracePropagation(
            ObjectProvider<Tracer> tracer, ObjectProvider<Propagator> propagators, PayloadCodec codec) {
        return new TracePropagation(tracer, SingletonSupplier.of(() -> areTracesContinued(propagators)), codec);
    }

    /** Without exports Spring Boot has a propagator that reads and writes nothing: then payloads are left as they are. */
    private static boolean areTracesContinued(ObjectProvider<Propagator> propagators) {
        return propagators.stream().anyMatch(propagator -> !propagator.fields().isEmpty());
    }

    /** Without a real tracer observations would only cost time: there are metrics of jobs already. */
    private static ObservationRegistry registryIfTraced(ObservationRegistry registry, Tracer tracer) {
        return tracer == Tracer.NOOP ? ObservationRegistry.NOOP : registry;
    }
}
