package dev.pgworker.autoconfigure;

import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import javax.sql.DataSource;

import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnSingleCandidate;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.boot.sql.init.dependency.DatabaseInitializationDependencyConfigurer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.Worker;
import dev.pgworker.WorkerClient;
import dev.pgworker.WorkerSettings;
import dev.pgworker.crontab.CronAdmin;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.JobAdmin;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.JobRecoveryHandler;
import dev.pgworker.task.PayloadCodec;

/** Configures what adds and administers jobs on the application's data source, and the schema that holds them. */
@AutoConfiguration(
        afterName = {
            "org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration",
            "org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration"
        })
@ConditionalOnSingleCandidate(DataSource.class)
@EnableConfigurationProperties(WorkerProperties.class)
@Import(DatabaseInitializationDependencyConfigurer.class)
public final class JobSchedulerAutoConfiguration {

    @Bean
    @ConditionalOnMissingBean
    WorkerSchema workerSchema(WorkerProperties properties) {
        return properties.workerSchema();
    }

    @Bean
    @ConditionalOnMissingBean
    WorkerSettings workerSettings(WorkerProperties properties) {
        return properties.workerSettings();
    }

    @Bean
    @ConditionalOnMissingBean
    PayloadCodec workerPayloadCodec(ObjectProvider<JsonMapper> mapper) {
        return new PayloadCodec(mapper.getIfAvailable(JsonMapper::new));
    }

    @Bean
    @ConditionalOnMissingBean
    SchemaMigrator workerSchemaMigrator(
            DataSource dataSource,
            WorkerSchema schema,
            WorkerProperties properties,
            ObjectProvider<JdbcConnectionDetails> connectionDetails) {
        WorkerProperties.Schema credentials = properties.schema();
        DataSource separate = SeparateConnections.create(
                "worker.schema",
                credentials.url(),
                credentials.user(),
                credentials.password(),
                connectionDetails.getIfAvailable());
        return new SchemaMigrator(separate == null ? dataSource : separate, schema, credentials.peerIndexes());
    }

    @Bean
    @ConditionalOnMissingBean
    WorkerSchemaInitializer workerSchemaInitializer(SchemaMigrator migrator, WorkerProperties properties) {
        return new WorkerSchemaInitializer(
                migrator, properties.schema().mode(), properties.schema().startupTimeout());
    }

    /**
     * Depends on the initializer alone, so that an application's migrations in Java may add jobs. It may exist long before
     * other beans: what a decorator needs besides is to be fetched when the first job is added.
     */
    @Bean
    @ConditionalOnMissingBean
    JobScheduler jobScheduler(
            DataSource dataSource,
            WorkerSchema schema,
            PayloadCodec codec,
            WorkerSchemaInitializer initializer,
            ObjectProvider<ScheduleInterceptor> interceptors,
            @Qualifier("workerJobSchedulerDecorator") ObjectProvider<UnaryOperator<JobScheduler>> decorators) {
        JobScheduler scheduler = WorkerClient.jobScheduler(
                dataSource, schema, codec, () -> interceptors.orderedStream().toList());
        for (UnaryOperator<JobScheduler> decorator : decorators.orderedStream().toList()) {
            scheduler = decorator.apply(scheduler);
        }
        return scheduler;
    }

    @Bean
    @ConditionalOnMissingBean
    JobAdmin jobAdmin(
            DataSource dataSource,
            WorkerSchema schema,
            WorkerSettings settings,
            ObjectProvider<JobRecoveryHandler> recoveryHandlers,
            ObjectProvider<WorkerEventListener> listeners,
            @Qualifier("workerDirectListener") ObjectProvider<WorkerEventListener> directListeners,
            WorkerSchemaInitializer initializer) {
        // Looked up when needed: a handler or listener may well use the administration.
        return WorkerClient.jobAdmin(
                dataSource,
                schema,
                settings.recovery(),
                () -> recoveryHandlers.orderedStream().toList(),
                () -> Stream.concat(listeners.orderedStream(), directListeners.orderedStream())
                        .toList());
    }

    /** Without a worker it knows no items of this application, but may look at and pause those of others. */
    @Bean
    @ConditionalOnMissingBean
    CronAdmin cronAdmin(
            DataSource dataSource,
            WorkerSchema schema,
            WorkerSchemaInitializer initializer,
            ObjectProvider<Worker> worker) {
        return new LazyCronAdmin(() -> {
            Worker running = worker.getIfAvailable();
            return running == null ? WorkerClient.cronAdmin(dataSource, schema) : running.cronAdmin();
        });
    }
}
