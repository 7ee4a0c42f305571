package dev.pgworker;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.Executor;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.springframework.transaction.PlatformTransactionManager;

import dev.pgworker.crontab.CronPlan;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.ForbiddenFlags;
import dev.pgworker.task.JobInterceptor;
import dev.pgworker.task.JobRecoveryHandler;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.TaskRegistry;

/** What every run of a worker is made of. */
record WorkerParts(
        DataSource dataSource,
        DataSource listenDataSource,
        WorkerSchema schema,
        WorkerSettings settings,
        TaskRegistry tasks,
        PayloadCodec codec,
        JobScheduler jobScheduler,
        @Nullable Executor handlerExecutor,
        @Nullable PlatformTransactionManager transactionManager,
        @Nullable ForbiddenFlags forbiddenFlags,
        List<WorkerEventListener> listeners,
        List<WorkerEventListener> directListeners,
        List<JobInterceptor> jobInterceptors,
        CronPlan cron,
        List<JobRecoveryHandler> recoveryHandlers,
        Duration auditInterval,
        Duration stallAfter,
        Duration stuckAfter) {}
