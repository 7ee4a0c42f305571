package dev.pgworker.autoconfigure;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.boot.thread.Threading;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.env.Environment;
import org.springframework.core.task.SimpleAsyncTaskExecutor;
import org.springframework.transaction.PlatformTransactionManager;

import dev.pgworker.Worker;
import dev.pgworker.WorkerSettings;
import dev.pgworker.crontab.CronItem;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.ForbiddenFlags;
import dev.pgworker.task.JobInterceptor;
import dev.pgworker.task.JobRecoveryHandler;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.TaskRegistration;

/** Configures the worker, which runs jobs, unless that is disabled. */
@AutoConfiguration(after = JobSchedulerAutoConfiguration.class)
@ConditionalOnBean(WorkerSchemaInitializer.class)
@ConditionalOnProperty(name = "worker.enabled", matchIfMissing = true)
public final class WorkerAutoConfiguration {

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
        return SeparateConnections.create("worker.listen", listen.url(), listen.user(), listen.password(), application);
    }
}
