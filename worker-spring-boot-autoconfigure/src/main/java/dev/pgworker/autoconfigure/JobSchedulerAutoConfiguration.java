package dev.pgworker.autoconfigure;

import java.util.LinkedHashMap;
import java.util.Map;

import jakarta.validation.Validator;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.sql.init.dependency.DatabaseInitializationDependencyConfigurer;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.Environment;
import tools.jackson.databind.json.JsonMapper;

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
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.PayloadValidator;

import static dev.pgworker.autoconfigure.WorkerInstances.DEFAULT;

/**
 * Auto-configuration for adding and administering jobs on the application's data source, and for the schema that holds
 * them; likewise for each of {@code pgworker.instances}. The names of all beans begin with {@code worker}, so that they do
 * not conflict with beans of the application or of another scheduler.
 *
 * @since 0.1.0
 */
@AutoConfiguration(
        afterName = {
            "org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration",
            "org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration",
            "org.springframework.boot.validation.autoconfigure.ValidationAutoConfiguration"
        })
@Conditional(OnDataSourceCondition.class)
@EnableConfigurationProperties(WorkerProperties.class)
@Import({DatabaseInitializationDependencyConfigurer.class, InstanceBeans.OfClients.class})
public final class JobSchedulerAutoConfiguration {

    @Bean
    WorkerInstances workerInstances(BeanFactory beans, WorkerProperties properties, Environment environment) {
        Map<String, WorkerProperties> all = new LinkedHashMap<>();
        all.put(DEFAULT, properties);
        InstanceProperties.names(environment)
                .forEach(name -> all.put(name, InstanceProperties.bind(environment, name)));
        return new WorkerInstances(beans, all);
    }

    @Bean(InstanceBeans.CLIENT_FACTORY)
    ClientFactory workerClientFactory(ConfigurableListableBeanFactory beans, WorkerInstances instances) {
        return new ClientFactory(beans, instances);
    }

    @Bean
    HandlerBeans workerHandlerBeans(ConfigurableListableBeanFactory beans) {
        return new HandlerBeans(beans);
    }

    @Bean
    DurableEvents workerDurableEvents(
            ConfigurableApplicationContext context, HandlerBeans handlers, WorkerInstances instances) {
        return new DurableEvents(context, handlers, instances);
    }

    @Bean
    @ConditionalOnMissingBean
    PayloadCodec workerPayloadCodec(ObjectProvider<JsonMapper> mapper, ObjectProvider<PayloadValidator> validator) {
        return new PayloadCodec(mapper.getIfAvailable(JsonMapper::new), validator.getIfAvailable());
    }

    /** Where the application has Bean Validation. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(Validator.class)
    @ConditionalOnBooleanProperty(name = "pgworker.validate-payloads", matchIfMissing = true)
    static class Validation {

        @Bean
        @ConditionalOnMissingBean
        @ConditionalOnBean(Validator.class)
        PayloadValidator workerPayloadValidator(Validator validator) {
            return new BeanPayloadValidator(validator);
        }
    }

    @Bean
    @ConditionalOnMissingBean
    WorkerSchema workerSchema(ClientFactory factory) {
        return factory.workerSchema(DEFAULT);
    }

    @Bean
    @ConditionalOnMissingBean
    WorkerSettings workerSettings(ClientFactory factory) {
        return factory.workerSettings(DEFAULT);
    }

    @Bean
    @ConditionalOnMissingBean
    SchemaMigrator workerSchemaMigrator(ClientFactory factory) {
        return factory.schemaMigrator(DEFAULT);
    }

    @Bean
    @ConditionalOnMissingBean
    WorkerSchemaInitializer workerSchemaInitializer(ClientFactory factory) {
        return factory.schemaInitializer(DEFAULT);
    }

    @Bean
    @ConditionalOnMissingBean
    JobScheduler workerJobScheduler(ClientFactory factory) {
        return factory.jobScheduler(DEFAULT);
    }

    @Bean
    @ConditionalOnMissingBean
    JobQueries workerJobQueries(ClientFactory factory) {
        return factory.jobQueries(DEFAULT);
    }

    @Bean
    @ConditionalOnMissingBean
    JobChanges workerJobChanges(ClientFactory factory) {
        return factory.jobChanges(DEFAULT);
    }

    @Bean
    @ConditionalOnMissingBean
    WorkerOperations workerOperations(ClientFactory factory) {
        return factory.workerOperations(DEFAULT);
    }

    @Bean
    @ConditionalOnMissingBean
    RecurringJobs workerRecurringJobs(ClientFactory factory) {
        return factory.recurringJobs(DEFAULT);
    }

    @Bean
    @ConditionalOnMissingBean
    JobLimits workerJobLimits(ClientFactory factory) {
        return factory.jobLimits(DEFAULT);
    }

    @Bean
    @ConditionalOnMissingBean
    JobSignals workerJobSignals(ClientFactory factory) {
        return factory.jobSignals(DEFAULT);
    }

    @Bean
    @ConditionalOnMissingBean
    JobFlows workerJobFlows(ClientFactory factory) {
        return factory.jobFlows(DEFAULT);
    }
}
