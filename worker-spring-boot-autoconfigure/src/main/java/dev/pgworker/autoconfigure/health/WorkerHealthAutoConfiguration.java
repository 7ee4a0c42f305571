package dev.pgworker.autoconfigure.health;

import java.util.Map;

import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.health.contributor.CompositeHealthContributor;
import org.springframework.boot.health.contributor.HealthContributor;
import org.springframework.context.annotation.Bean;

import dev.pgworker.Worker;
import dev.pgworker.WorkerSettings;
import dev.pgworker.autoconfigure.WorkerAutoConfiguration;
import dev.pgworker.autoconfigure.WorkerProperties;
import dev.pgworker.autoconfigure.WorkerSchemaInitializer;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;

/**
 * Tells in Spring Boot's health endpoint whether jobs can be added and are run.
 *
 * @since 0.1.0
 */
@AutoConfiguration(after = WorkerAutoConfiguration.class)
@ConditionalOnClass({HealthContributor.class, ConditionalOnEnabledHealthIndicator.class})
@ConditionalOnBean(WorkerSchemaInitializer.class)
public final class WorkerHealthAutoConfiguration {

    @Bean
    @ConditionalOnEnabledHealthIndicator("worker")
    @ConditionalOnMissingBean(name = {"workerHealthContributor", "workerHealthIndicator"})
    CompositeHealthContributor workerHealthContributor(
            SchemaMigrator migrator,
            WorkerSchema schema,
            ObjectProvider<Worker> worker,
            WorkerSettings settings,
            WorkerProperties properties) {
        return CompositeHealthContributor.fromMap(Map.of(
                "schema", new SchemaHealthIndicator(migrator, schema),
                "engine", new EngineHealthIndicator(worker, settings, properties.autoStartup()),
                "threads", new ThreadsHealthIndicator(worker)));
    }
}
