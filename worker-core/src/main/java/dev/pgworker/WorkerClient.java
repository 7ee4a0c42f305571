package dev.pgworker;

import java.time.ZoneOffset;
import java.util.List;
import java.util.function.Supplier;
import javax.sql.DataSource;

import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.Crontab;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.flow.JobFlows;
import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.client.CrontabControl;
import dev.pgworker.internal.client.JdbcJobChanges;
import dev.pgworker.internal.client.JdbcJobFlows;
import dev.pgworker.internal.client.JdbcJobLimits;
import dev.pgworker.internal.client.JdbcJobQueries;
import dev.pgworker.internal.client.JdbcJobScheduler;
import dev.pgworker.internal.client.JdbcJobSignals;
import dev.pgworker.internal.client.JdbcWorkerOperations;
import dev.pgworker.internal.client.ScheduleControl;
import dev.pgworker.internal.crontab.CronPlan;
import dev.pgworker.internal.crontab.KnownRecurringJobs;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.store.SweepStore;
import dev.pgworker.job.DeadWorker;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.ResultSettings;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.limit.JobLimits;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.step.JobSignals;
import dev.pgworker.step.StepSettings;
import dev.pgworker.task.JobRecoveryHandler;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.RecoveryDecision;

/**
 * Creates schedulers and administrations for applications that add and manage jobs without running any.
 *
 * @since 0.1.0
 */
public final class WorkerClient {

    private WorkerClient() {}

    /**
     * Returns a scheduler for the jobs of a schema.
     *
     * @param dataSource the data source whose Spring transactions are joined
     */
    public static JobScheduler jobScheduler(DataSource dataSource, WorkerSchema schema, PayloadCodec codec) {
        return jobScheduler(dataSource, schema, codec, List::of);
    }

    /**
     * Returns a scheduler for the jobs of a schema.
     *
     * @param dataSource the data source whose Spring transactions are joined
     * @param interceptors called in order for every job before it is scheduled; obtained when the first job is added
     */
    public static JobScheduler jobScheduler(
            DataSource dataSource,
            WorkerSchema schema,
            PayloadCodec codec,
            Supplier<List<ScheduleInterceptor>> interceptors) {
        return jobScheduler(dataSource, schema, codec, interceptors, ResultSettings.DEFAULT);
    }

    /**
     * Returns a scheduler for the jobs of a schema.
     *
     * @param dataSource the data source whose Spring transactions are joined
     * @param interceptors called in order for every job before it is scheduled; obtained when the first job is added
     * @param results how long results are kept that are asked for
     */
    public static JobScheduler jobScheduler(
            DataSource dataSource,
            WorkerSchema schema,
            PayloadCodec codec,
            Supplier<List<ScheduleInterceptor>> interceptors,
            ResultSettings results) {
        requireDatabase(dataSource, schema);
        return new JdbcJobScheduler(
                dataSource,
                schema,
                Arguments.requireNonNull("codec", codec),
                Arguments.requireNonNull("interceptors", interceptors),
                Arguments.requireNonNull("results", results).keepFor());
    }

    /**
     * Returns what reads a schema's jobs.
     *
     * @param dataSource the data source whose Spring transactions are joined
     */
    public static JobQueries jobQueries(DataSource dataSource, WorkerSchema schema) {
        return jobQueries(dataSource, schema, RecoverySettings.DEFAULT);
    }

    /**
     * Returns what reads a schema's jobs.
     *
     * @param dataSource the data source whose Spring transactions are joined
     * @param recovery the settings that decide which workers are stale
     */
    public static JobQueries jobQueries(DataSource dataSource, WorkerSchema schema, RecoverySettings recovery) {
        requireDatabase(dataSource, schema);
        return new JdbcJobQueries(
                dataSource, schema, SweepStore.Request.of(Arguments.requireNonNull("recovery", recovery)));
    }

    /**
     * Returns what changes a schema's jobs.
     *
     * @param dataSource the data source whose Spring transactions are joined
     */
    public static JobChanges jobChanges(DataSource dataSource, WorkerSchema schema) {
        return jobChanges(dataSource, schema, List::of);
    }

    /**
     * Returns what changes a schema's jobs.
     *
     * @param dataSource the data source whose Spring transactions are joined
     * @param listeners told what is changed, on the caller's thread after its commit; obtained at each change
     */
    public static JobChanges jobChanges(
            DataSource dataSource, WorkerSchema schema, Supplier<List<WorkerEventListener>> listeners) {
        requireDatabase(dataSource, schema);
        return new JdbcJobChanges(dataSource, schema, byHand(listeners));
    }

    /**
     * Returns what operates a schema's workers.
     *
     * @param dataSource the data source whose Spring transactions are joined
     */
    public static WorkerOperations workerOperations(DataSource dataSource, WorkerSchema schema) {
        return workerOperations(dataSource, schema, RecoverySettings.DEFAULT, List::of, List::of);
    }

    /**
     * Returns what operates a schema's workers.
     *
     * @param dataSource the data source whose Spring transactions are joined
     * @param recovery the settings by which manual sweeps detect dead workers, unless their options set others
     * @param recoveryHandlers decide, in order, what happens to the jobs that manual sweeps recover; obtained for each
     *     such job
     * @param listeners receive the events of manual sweeps and of changes, on the calling thread after its commit;
     *     obtained for each event
     */
    public static WorkerOperations workerOperations(
            DataSource dataSource,
            WorkerSchema schema,
            RecoverySettings recovery,
            Supplier<List<JobRecoveryHandler>> recoveryHandlers,
            Supplier<List<WorkerEventListener>> listeners) {
        requireDatabase(dataSource, schema);
        Arguments.requireNonNull("recoveryHandlers", recoveryHandlers);
        JobRecoveryHandler handler = (job, worker) -> recoveryHandlers.get().stream()
                .map(each -> each.decide(job, worker))
                .filter(decision -> decision.kind() != RecoveryDecision.Kind.DEFAULT)
                .findFirst()
                .orElse(RecoveryDecision.useDefault());
        return new JdbcWorkerOperations(
                dataSource,
                schema,
                new SweepStore(dataSource, schema, List.of(handler)),
                SweepStore.Request.of(Arguments.requireNonNull("recovery", recovery)),
                byHand(listeners));
    }

    /**
     * Returns the recurring jobs of a schema, for an application that has no crontab of its own.
     *
     * @param dataSource the data source whose Spring transactions are joined
     */
    public static RecurringJobs recurringJobs(DataSource dataSource, WorkerSchema schema, PayloadCodec codec) {
        return recurringJobs(dataSource, schema, codec, jobScheduler(dataSource, schema, codec), List::of);
    }

    /**
     * Returns the recurring jobs of a schema.
     *
     * @param dataSource the data source whose Spring transactions are joined
     * @param scheduler adds the jobs that are triggered, to the same schema
     * @param items the items of the application's crontab, each with its time zone, as {@code Worker.cronItems} returns them;
     *     asked at each call
     */
    public static RecurringJobs recurringJobs(
            DataSource dataSource,
            WorkerSchema schema,
            PayloadCodec codec,
            JobScheduler scheduler,
            Supplier<List<CronItem>> items) {
        requireDatabase(dataSource, schema);
        Arguments.requireNonNull("codec", codec);
        Arguments.requireNonNull("scheduler", scheduler);
        Arguments.requireNonNull("items", items);
        return new KnownRecurringJobs(
                new ScheduleControl(dataSource, schema, codec, scheduler),
                new CrontabControl(dataSource, schema),
                scheduler,
                () -> CronPlan.of(Crontab.of(items.get()), ZoneOffset.UTC, codec));
    }

    /**
     * Returns the limits of a schema's jobs.
     *
     * @param dataSource the data source whose Spring transactions are joined
     */
    public static JobLimits jobLimits(DataSource dataSource, WorkerSchema schema) {
        return jobLimits(dataSource, schema, List::of);
    }

    /**
     * Returns the limits of a schema's jobs.
     *
     * @param dataSource the data source whose Spring transactions are joined
     * @param listeners told what is changed, on the caller's thread; obtained at each change
     */
    public static JobLimits jobLimits(
            DataSource dataSource, WorkerSchema schema, Supplier<List<WorkerEventListener>> listeners) {
        requireDatabase(dataSource, schema);
        return new JdbcJobLimits(dataSource, schema, byHand(listeners));
    }

    /**
     * Returns what sends signals to a schema's jobs.
     *
     * @param dataSource the data source whose Spring transactions are joined
     * @param settings have how long signals are kept
     */
    public static JobSignals jobSignals(
            DataSource dataSource, WorkerSchema schema, PayloadCodec codec, StepSettings settings) {
        requireDatabase(dataSource, schema);
        return new JdbcJobSignals(
                dataSource,
                schema,
                Arguments.requireNonNull("codec", codec),
                Arguments.requireNonNull("settings", settings).keepSignals());
    }

    /**
     * Returns the flows of a schema's jobs.
     *
     * @param dataSource the data source whose Spring transactions are joined
     */
    public static JobFlows jobFlows(DataSource dataSource, WorkerSchema schema, PayloadCodec codec) {
        return jobFlows(dataSource, schema, codec, jobScheduler(dataSource, schema, codec));
    }

    /**
     * Returns the flows of a schema's jobs.
     *
     * @param dataSource the data source whose Spring transactions are joined
     * @param scheduler adds the jobs, to the same schema through the same data source
     */
    public static JobFlows jobFlows(
            DataSource dataSource, WorkerSchema schema, PayloadCodec codec, JobScheduler scheduler) {
        requireDatabase(dataSource, schema);
        return new JdbcJobFlows(
                dataSource,
                schema,
                Arguments.requireNonNull("codec", codec),
                Arguments.requireNonNull("scheduler", scheduler));
    }

    private static WorkerEvents byHand(Supplier<List<WorkerEventListener>> listeners) {
        Arguments.requireNonNull("listeners", listeners);
        WorkerEventListener later =
                event -> new WorkerEvents(event.workerId(), listeners.get(), List.of()).publish(event);
        return new WorkerEvents(DeadWorker.BY_HAND, List.of(later), List.of());
    }

    private static void requireDatabase(DataSource dataSource, WorkerSchema schema) {
        Arguments.requireNonNull("dataSource", dataSource);
        Arguments.requireNonNull("schema", schema);
    }
}
