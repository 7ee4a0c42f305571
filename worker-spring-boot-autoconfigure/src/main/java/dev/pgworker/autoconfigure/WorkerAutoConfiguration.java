package dev.pgworker.autoconfigure;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnSingleCandidate;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.boot.sql.init.dependency.DatabaseInitializationDependencyConfigurer;
import org.springframework.boot.thread.Threading;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.env.Environment;
import org.springframework.core.task.SimpleAsyncTaskExecutor;
import org.springframework.transaction.PlatformTransactionManager;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.Worker;
import dev.pgworker.WorkerClient;
import dev.pgworker.WorkerSettings;
import dev.pgworker.crontab.CronAdmin;
import dev.pgworker.crontab.CronItem;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.JobAdmin;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.ForbiddenFlags;
import dev.pgworker.task.JobInterceptor;
import dev.pgworker.task.JobRecoveryHandler;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.TaskRegistration;

/**
 * Configures PgWorker on the application's data source: adding jobs always, running them unless that is disabled.
 *
 * @since 0.1.0
 */
@AutoConfiguration(
        afterName = {
            "org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration",
            "org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration"
        })
@ConditionalOnSingleCandidate(DataSource.class)
@EnableConfigurationProperties(WorkerProperties.class)
@Import(DatabaseInitializationDependencyConfigurer.class)
public final class WorkerAutoConfiguration {

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

    /** What an application needs that runs jobs. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnProperty(name = "worker.enabled", matchIfMissing = true)
    static class Running {

        private static final String HANDLER_THREADS = "worker-job-";

        @Bean
        HandlerBeans workerHandlerBeans(ConfigurableListableBeanFactory beanFactory) {
            return new HandlerBeans(beanFactory);
        }

        @Bean
        @Lazy
        @ConditionalOnMissingBean
        Worker worker(
                DataSource dataSource,
                WorkerSchema schema,
                WorkerSettings settings,
                PayloadCodec codec,
                JobScheduler jobScheduler,
                WorkerProperties properties,
                ObjectProvider<JdbcConnectionDetails> connectionDetails,
                HandlerBeans handlerBeans,
                ObjectProvider<TaskRegistration> registrations,
                ObjectProvider<CronItem> cronItems,
                ObjectProvider<WorkerEventListener> listeners,
                @Qualifier("workerDirectListener") ObjectProvider<WorkerEventListener> directListeners,
                ObjectProvider<JobInterceptor> interceptors,
                ObjectProvider<ScheduleInterceptor> scheduleInterceptors,
                ObjectProvider<WorkerBuilderCustomizer> customizers,
                ObjectProvider<ForbiddenFlags> forbiddenFlags,
                ObjectProvider<JobRecoveryHandler> recoveryHandlers,
                ObjectProvider<PlatformTransactionManager> transactionManager,
                Environment environment) {
            List<TaskRegistration> tasks = new ArrayList<>(handlerBeans.find());
            registrations.orderedStream().forEach(tasks::add);
            Worker.Builder builder = Worker.builder(dataSource)
                    .schema(schema)
                    .settings(settings)
                    .codec(codec)
                    .jobScheduler(jobScheduler)
                    .listenDataSource(listenDataSource(properties, connectionDetails.getIfAvailable()))
                    .privateDataSource(SeparateConnections.like(dataSource, connectionDetails.getIfUnique()))
                    .transactionManager(transactionManager.getIfUnique())
                    .forbiddenFlags(union(
                            properties.forbiddenFlags(),
                            forbiddenFlags.orderedStream().toList()))
                    .crontab(CrontabSources.read(
                            properties,
                            handlerBeans.classes(),
                            cronItems.orderedStream().toList()))
                    .crontabZone(properties.crontabZone())
                    .tasks(tasks);
            if (Threading.VIRTUAL.isActive(environment)) {
                SimpleAsyncTaskExecutor executor = new SimpleAsyncTaskExecutor(HANDLER_THREADS);
                executor.setVirtualThreads(true);
                builder.handlerExecutor(executor);
            }
            listeners.orderedStream().forEach(builder::listener);
            directListeners.orderedStream().forEach(builder::directListener);
            interceptors.orderedStream().forEach(builder::jobInterceptor);
            scheduleInterceptors.orderedStream().forEach(builder::scheduleInterceptor);
            recoveryHandlers.orderedStream().forEach(builder::recoveryHandler);
            customizers.orderedStream().forEach(customizer -> customizer.customize(builder));
            return builder.build();
        }

        @Bean
        WorkerLifecycle workerLifecycle(
                ObjectProvider<Worker> worker,
                HandlerBeans handlerBeans,
                DataSource dataSource,
                WorkerSettings settings,
                WorkerProperties properties,
                Environment environment) {
            return new WorkerLifecycle(
                    worker,
                    handlerBeans,
                    built -> {
                        ConnectionPool.check(dataSource, built);
                        ShutdownTime.check(settings, environment);
                    },
                    properties.autoStartup());
        }

        private static ForbiddenFlags union(List<String> fixed, List<ForbiddenFlags> suppliers) {
            if (suppliers.isEmpty()) {
                return () -> fixed;
            }
            return () -> {
                Set<String> flags = new LinkedHashSet<>(fixed);
                suppliers.forEach(supplier -> flags.addAll(supplier.current()));
                return flags;
            };
        }

        private static @Nullable DataSource listenDataSource(
                WorkerProperties properties, @Nullable JdbcConnectionDetails application) {
            WorkerProperties.Listen listen = properties.listen();
            return SeparateConnections.create(
                    "worker.listen", listen.url(), listen.user(), listen.password(), application);
        }
    }
}
