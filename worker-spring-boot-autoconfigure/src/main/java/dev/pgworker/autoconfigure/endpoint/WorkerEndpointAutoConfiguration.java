package dev.pgworker.autoconfigure.endpoint;

import org.springframework.boot.actuate.autoconfigure.endpoint.condition.ConditionalOnAvailableEndpoint;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;

import dev.pgworker.autoconfigure.WorkerAutoConfiguration;
import dev.pgworker.autoconfigure.WorkerInstances;

/**
 * Auto-configuration for the actuator endpoint that shows and changes jobs, if it is exposed.
 *
 * @since 0.1.0
 */
@AutoConfiguration(after = WorkerAutoConfiguration.class)
@ConditionalOnClass(ConditionalOnAvailableEndpoint.class)
@ConditionalOnBean(WorkerInstances.class)
@EnableConfigurationProperties(WorkerEndpointProperties.class)
public final class WorkerEndpointAutoConfiguration {

    @Bean
    @ConditionalOnAvailableEndpoint
    @ConditionalOnMissingBean
    WorkerEndpoint workerActuatorEndpoint(WorkerInstances instances, WorkerEndpointProperties properties) {
        return new WorkerEndpoint(instances, properties.showPayloads());
    }
}
