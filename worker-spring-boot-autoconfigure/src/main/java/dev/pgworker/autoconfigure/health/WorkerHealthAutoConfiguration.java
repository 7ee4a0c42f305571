package dev.pgworker.autoconfigure.health;

import java.util.LinkedHashMap;
import java.util.Map;

import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.health.contributor.CompositeHealthContributor;
import org.springframework.boot.health.contributor.HealthContributor;
import org.springframework.context.annotation.Bean;

import dev.pgworker.autoconfigure.WorkerAutoConfiguration;
import dev.pgworker.autoconfigure.WorkerInstance;
import dev.pgworker.autoconfigure.WorkerInstances;

/**
 * Auto-configuration for health indicators that report whether jobs can be added and are run.
 *
 * @since 0.1.0
 */
@AutoConfiguration(after = WorkerAutoConfiguration.class)
@ConditionalOnClass({HealthContributor.class, ConditionalOnEnabledHealthIndicator.class})
@ConditionalOnBean(WorkerInstances.class)
public final class WorkerHealthAutoConfiguration {

    @Bean
    @ConditionalOnEnabledHealthIndicator("pgworker")
    @ConditionalOnMissingBean(name = {"pgworkerHealthContributor", "pgworkerHealthIndicator"})
    CompositeHealthContributor pgworkerHealthContributor(WorkerInstances instances) {
        Map<String, HealthContributor> contributors = new LinkedHashMap<>();
        for (WorkerInstance instance : instances.all()) {
            if (instance.name().equals(WorkerInstances.DEFAULT)) {
                contributors.putAll(contributors(instance));
            } else {
                contributors.put(instance.name(), CompositeHealthContributor.fromMap(contributors(instance)));
            }
        }
        return CompositeHealthContributor.fromMap(contributors);
    }

    private static Map<String, HealthContributor> contributors(WorkerInstance instance) {
        return Map.of(
                "schema", new SchemaHealthIndicator(instance.schemaMigrator(), instance.schema()),
                "engine", new EngineHealthIndicator(instance::worker, instance.settings(), instance.autoStartup()),
                "threads", new ThreadsHealthIndicator(instance::worker));
    }
}
