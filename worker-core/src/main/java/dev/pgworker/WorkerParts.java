package dev.pgworker;

import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import javax.sql.DataSource;

import io.micrometer.observation.ObservationRegistry;
import org.jspecify.annotations.Nullable;
import org.springframework.transaction.PlatformTransactionManager;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.internal.crontab.CronPlan;
import dev.pgworker.internal.schedule.SchedulePlan;
import dev.pgworker.internal.store.ClaimStore;
import dev.pgworker.internal.store.JobStore;
import dev.pgworker.internal.store.WorkerStore;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.limit.Limit;
import dev.pgworker.recovery.RecoverySettings;
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
        @Nullable DataSource privateDataSource,
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
        SchedulePlan schedules,
        List<Limit> limits,
        List<JobRecoveryHandler> recoveryHandlers,
        PeriodicNaming periodic,
        Duration reconcileInterval,
        Duration stallAfter,
        Duration stuckAfter) {

    /**
     * How the worker's periodic tasks are shown.
     *
     * @param name what their names begin with
     * @param observations where each execution is observed
     */
    record PeriodicNaming(String name, ObservationRegistry observations) {}

    /** What else than claims and completions takes a connection for moments: sweeps, vacuums, recurring jobs, and the reconciler. */
    private static final int UPKEEP = 2;

    private static final int CLAIM_AND_COMPLETE = 2;

    /** One for each chain of direct batches, and as many for moments. */
    private static final int DIRECT = 2;

    /** Returns a store for the heartbeat, which must not wait behind handlers. */
    WorkerStore heartbeatStore() {
        return privateDataSource == null
                ? new WorkerStore(dataSource, schema)
                : WorkerStore.withOwnConnection(privateDataSource, dataSource, schema);
    }

    /** Returns a store that opens a connection of its own for each statement, or null if there is nowhere to have it from. */
    @Nullable ClaimStore claimsBesideThePool(String workerId) {
        return privateDataSource == null ? null : new JobStore(privateDataSource, schema, workerId).claims();
    }

    /** Returns what the worker publishes about itself, JSON: by the times, sweeps decide when it is dead. */
    String metadata() {
        RecoverySettings recovery = settings.recovery();
        return new JsonMapper()
                .writeValueAsString(Map.of(
                        "implementation", "pgworker",
                        "process", ManagementFactory.getRuntimeMXBean().getName(),
                        "concurrency", settings.concurrency(),
                        "tasks", tasks.identifiers(),
                        "heartbeatIntervalMillis", recovery.heartbeatInterval().toMillis(),
                        "sweepThresholdMillis", recovery.sweepThreshold().toMillis(),
                        "resilientSweepThresholdMillis",
                                recovery.resilientSweepThreshold().toMillis()));
    }

    /** Returns how many connections of the application's data source the worker may have in use at the same time. */
    int connectionsNeeded() {
        return (tasks.hasTransactional() ? settings.concurrency() : 0)
                + CLAIM_AND_COMPLETE
                + UPKEEP
                + (settings.listen() && listenDataSource == dataSource ? 1 : 0)
                + (tasks.directIdentifiers().isEmpty() ? 0 : privateDataSource == null ? 2 * DIRECT : DIRECT)
                + (privateDataSource == null ? 1 : 0);
    }
}
