package dev.pgworker.autoconfigure;

import java.time.Duration;
import java.time.ZoneId;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BiFunction;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.core.io.Resource;
import org.springframework.util.unit.DataSize;

import dev.pgworker.WorkerSettings;
import dev.pgworker.history.HistorySettings;
import dev.pgworker.job.CleanupSettings;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.ResultSettings;
import dev.pgworker.limit.Limit;
import dev.pgworker.limit.LimitAttributes;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.schema.PeerIndexes;
import dev.pgworker.schema.SchemaMode;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.step.StepSettings;
import dev.pgworker.task.CancelSettings;

/**
 * The properties of PgWorker.
 *
 * @param enabled Whether to run jobs. An application that does not run jobs can still add them.
 * @param autoStartup Whether to start the worker with the application. Set to false to start it, or to run what is due with
 *     Worker.runOnce, by hand.
 * @param concurrency Maximum number of jobs that run at the same time, 1 to 10000. By default, the number of available
 *     processors, but at least 2.
 * @param localQueue Jobs that are claimed before a handler is free to run them.
 * @param queueRunLimit Maximum number of jobs of one named queue to claim together, 1 to 1000, while their handler is fast.
 *     The jobs still run one after the other.
 * @param pollInterval Fallback polling interval, in case a notification is lost.
 * @param vacuum Whether to vacuum the jobs table every few seconds while the worker finishes many jobs.
 * @param forbiddenFlags Flags that exclude jobs from this worker.
 * @param crontab Recurring jobs, one per line, in the Graphile Worker crontab format.
 * @param crontabFile Location of a file with further recurring jobs in the same format.
 * @param crontabZone Time zone of recurring jobs that do not specify one.
 * @param crontabStrict Whether to reject crontab text that other Graphile Workers would not understand, or read differently.
 * @param shutdown Graceful shutdown of the worker.
 * @param schema Database schema that holds the jobs.
 * @param listen Connection that listens for notifications.
 * @param recovery Detection of dead workers and recovery of their jobs.
 * @param statistics Figures of the last 24 hours.
 * @param history What became of jobs, kept in the database.
 * @param results Results of jobs, kept for those who wait for them.
 * @param cleanup Removal of data that is no longer used.
 * @param steps What is kept of the steps of jobs.
 * @param limits Limits of the jobs that run at once or start in a period, across all workers of the schema, by name.
 * @param tasks Tasks that this worker serves, or * for all that the application has handlers for. By default, those that no
 *     other worker of the application serves.
 * @param taskDefaults Defaults for single tasks, by their names; in brackets, as in "[send-mail]", if a name has other
 *     characters than letters, digits, - and _. Settings in code take precedence.
 * @param dataSource Name of the data source bean whose database holds the jobs. By default, the one marked with
 *     WorkerDataSource, or the primary one.
 * @param transactionManager Name of the transaction manager bean that transactional handlers use. By default, the one marked
 *     with WorkerTransactionManager, or the one of the data source.
 * @param instances Further workers in this application, by name. Each has the properties of the worker.
 * @since 0.1.0
 */
@ConfigurationProperties("pgworker")
public record WorkerProperties(
        @DefaultValue("true") boolean enabled,
        @DefaultValue("true") boolean autoStartup,
        @Nullable Integer concurrency,
        @DefaultValue LocalQueue localQueue,
        @DefaultValue("100") int queueRunLimit,
        @DefaultValue("true") boolean vacuum,
        @DefaultValue("2s") Duration pollInterval,
        @DefaultValue List<String> forbiddenFlags,
        @Nullable String crontab,
        @Nullable Resource crontabFile,
        @DefaultValue("UTC") ZoneId crontabZone,
        @DefaultValue("false") boolean crontabStrict,
        @DefaultValue Shutdown shutdown,
        @DefaultValue Schema schema,
        @DefaultValue Listen listen,
        @DefaultValue Recovery recovery,
        @DefaultValue Statistics statistics,
        @DefaultValue History history,
        @DefaultValue Results results,
        @DefaultValue Cleanup cleanup,
        @DefaultValue Cancel cancel,
        @DefaultValue Steps steps,
        @DefaultValue Map<String, LimitProperties> limits,
        @DefaultValue List<String> tasks,
        @DefaultValue Map<String, TaskDefaults> taskDefaults,
        @Nullable String dataSource,
        @Nullable String transactionManager,
        @DefaultValue Map<String, WorkerProperties> instances) {

    /**
     * Jobs that are claimed before a handler is free to run them.
     *
     * @param size Maximum number of jobs to claim ahead of free handlers, 0 to 10000, while handlers are fast. Set to 0 to
     *     claim a job only when a handler is free.
     * @param ttl Maximum time a claimed job waits for a handler before it is released to other workers.
     * @since 0.1.0
     */
    public record LocalQueue(
            @DefaultValue("1000") int size,
            @DefaultValue("1s") Duration ttl) {}

    /**
     * Graceful shutdown of the worker.
     *
     * @param gracePeriod Time that running jobs are given to finish on shutdown before they are interrupted.
     * @param interruptedJobRetryDelay Delay before a job that was interrupted by a shutdown runs again.
     * @since 0.1.0
     */
    public record Shutdown(
            @DefaultValue("5s") Duration gracePeriod,
            @DefaultValue("30s") Duration interruptedJobRetryDelay) {}

    /**
     * The database schema that holds the jobs.
     *
     * @param name Name of the schema. Lower-case letters, digits and underscores.
     * @param mode Action on the schema on startup.
     * @param peerIndexes Whether to keep the indexes that only Node.js and Rust workers use: in schemas that they installed,
     *     always or never.
     * @param startupTimeout Maximum time to wait on startup for a database server that is still starting.
     * @param url JDBC URL used to migrate the schema. By default, that of the application's data source.
     * @param user User that migrates the schema. By default, that of the application's data source.
     * @param password Password of the user that migrates the schema. By default, that of the application's data source.
     * @since 0.1.0
     */
    public record Schema(
            @DefaultValue("graphile_worker") String name,
            @DefaultValue("migrate") SchemaMode mode,
            @DefaultValue("auto") PeerIndexes peerIndexes,
            @DefaultValue("1m") Duration startupTimeout,
            @Nullable String url,
            @Nullable String user,
            @Nullable String password) {

        /** Returns a description without the password. */
        @Override
        public String toString() {
            return "Schema[name=" + name + ", mode=" + mode + ", peerIndexes=" + peerIndexes + ", startupTimeout="
                    + startupTimeout + ", url=" + url + ", user=" + user + "]";
        }
    }

    /**
     * Listener connection. With any of these set, it is not opened like the connections of the application's pool, for
     * example to bypass a connection pooler that does not forward notifications.
     *
     * @param enabled Whether to listen for notifications. If not, the worker keeps no connection for it and finds jobs at the
     *     poll interval only.
     * @param url JDBC URL of the listener connection. By default, that of the application's data
     *     source.
     * @param user User of the listener connection. By default, that of the application's data source.
     * @param password Password of the listener connection. By default, that of the application's data
     *     source.
     * @since 0.1.0
     */
    public record Listen(
            @DefaultValue("true") boolean enabled,
            @Nullable String url,
            @Nullable String user,
            @Nullable String password) {

        /** Returns a description without the password. */
        @Override
        public String toString() {
            return "Listen[enabled=" + enabled + ", url=" + url + ", user=" + user + "]";
        }
    }

    /**
     * Detection of dead workers and recovery of their jobs.
     *
     * @param enabled Whether to look for dead workers and recover their jobs. The worker registers and sends heartbeats in
     *     any case.
     * @param orphans Whether to also recover jobs of workers that are not registered, such as Rust workers with recovery
     *     turned off. Jobs of an unregistered worker that is alive run twice.
     * @param heartbeatInterval Interval between heartbeats of this worker.
     * @param sweepInterval Interval between sweeps for dead workers.
     * @param sweepThreshold Age of this worker's last heartbeat at which other workers consider it dead. Must be at least
     *     twice the heartbeat interval. A worker that cannot send a heartbeat for that long gives up its jobs.
     * @param peerThreshold Minimum age of the last heartbeat at which a worker that does not publish a threshold, such as one
     *     written in Rust, is considered dead. Ignored if the sweep threshold is greater.
     * @param recoveryDelay Delay before a recovered job runs again.
     * @param resilientSweepThresholdMultiplier Factor applied to the threshold of workers that hold a job with a resilient
     *     flag, 1 to 1000.
     * @param resilientJobFlags Flags of jobs whose workers are given more time before they are considered dead.
     * @param maxRecoveries Number of times a job is recovered without counting an attempt, 0 to 1000.
     * @since 0.1.0
     */
    public record Recovery(
            @DefaultValue("true") boolean enabled,
            @DefaultValue("false") boolean orphans,
            @DefaultValue("30s") Duration heartbeatInterval,
            @DefaultValue("60s") Duration sweepInterval,
            @DefaultValue("5m") Duration sweepThreshold,
            @DefaultValue("5m") Duration peerThreshold,
            @DefaultValue("30s") Duration recoveryDelay,
            @DefaultValue("3") int resilientSweepThresholdMultiplier,
            @DefaultValue("infrastructure_resilient") List<String> resilientJobFlags,
            @DefaultValue("3") int maxRecoveries) {

        /**
         * Returns the settings.
         *
         * @param prefix what the names of the worker's properties begin with
         * @throws InvalidConfigurationPropertyValueException if one is out of its range or does not fit another
         */
        RecoverySettings settings(String prefix) {
            try {
                return new RecoverySettings(
                        enabled,
                        orphans,
                        heartbeatInterval,
                        sweepInterval,
                        sweepThreshold,
                        peerThreshold,
                        recoveryDelay,
                        resilientSweepThresholdMultiplier,
                        resilientJobFlags,
                        maxRecoveries);
            } catch (IllegalArgumentException e) {
                throw refused(prefix + ".recovery.", this, e);
            }
        }
    }

    /**
     * Figures of the last 24 hours.
     *
     * @param enabled Whether to record what becomes of jobs, how long they wait and run, and how the backlog grows, for
     *     JobStatistics.
     * @since 0.1.0
     */
    public record Statistics(@DefaultValue("false") boolean enabled) {}

    /**
     * What became of jobs, kept in the database. A history belongs to a schema: it contains the jobs of all workers, and the
     * application that started last with this enabled or disabled decides.
     *
     * @param enabled Whether to keep a history of the jobs of the schema. By default, it is left as it is. When set to false,
     *     entries stay until they expire.
     * @param keepFor How long entries are kept, unless there are too many, 1 minute to 3650 days.
     * @param keepMost Number of entries beyond which the oldest are dropped early, 1000 to 10000000000.
     * @param payloads Whether entries contain the payloads of jobs. Payloads of more than 64KB are never kept.
     * @param maxResultSize Largest result of a handler that is kept, as JSON, at most 16MB. Set to 0 to keep none.
     * @since 0.1.0
     */
    public record History(
            @Nullable Boolean enabled,
            @DefaultValue("14d") Duration keepFor,
            @DefaultValue("1000000") long keepMost,
            @DefaultValue("true") boolean payloads,
            @DefaultValue("64KB") DataSize maxResultSize) {

        /**
         * Returns the settings.
         *
         * @param prefix what the names of the worker's properties begin with
         * @throws InvalidConfigurationPropertyValueException if one is out of its range
         */
        HistorySettings settings(String prefix) {
            try {
                int bytes = (int) Math.max(-1, Math.min(Integer.MAX_VALUE, maxResultSize.toBytes()));
                return new HistorySettings(enabled, keepFor, keepMost, payloads, bytes);
            } catch (IllegalArgumentException e) {
                throw refused(prefix + ".history.", this, e);
            }
        }
    }

    /**
     * Results of jobs, kept for those who wait for them.
     *
     * @param keepFor How long the result of a job that this application adds for its result is kept after its end, 1 second to
     *     3650 days. The database keeps at most 100000 results.
     * @param maxSize Largest result that this worker keeps for those who wait for it, as JSON, at most 16MB. A wait for a larger one ends
     *     with an exception that names the size.
     * @since 0.1.0
     */
    public record Results(
            @DefaultValue("1h") Duration keepFor,
            @DefaultValue("1MB") DataSize maxSize) {

        /**
         * Returns the settings.
         *
         * @param prefix what the names of the worker's properties begin with
         * @throws InvalidConfigurationPropertyValueException if one is out of its range
         */
        ResultSettings settings(String prefix) {
            try {
                int bytes = (int) Math.max(-1, Math.min(Integer.MAX_VALUE, maxSize.toBytes()));
                return new ResultSettings(keepFor, bytes);
            } catch (IllegalArgumentException e) {
                throw refused(prefix + ".results.", this, e);
            }
        }
    }

    /**
     * Removal of data that is no longer used. Each time is that of one worker of the schema, whichever is first.
     *
     * @param schedule Time of the removal: a Spring cron expression with six fields, such as "0 0 3 * * *", or a macro such
     *     as "@daily". The time zone is pgworker.crontab-zone. By default, or if set to "-", never.
     * @param tasks Data to remove.
     * @param failedJobsOlderThan Age of the last attempt from which permanently failed jobs are removed, if that is among
     *     the tasks, 0 to 3650 days.
     * @since 0.1.0
     */
    public record Cleanup(
            @Nullable String schedule,

            @DefaultValue({"gc-job-queues", "delete-ended-schedules"})
            Set<CleanupTask> tasks,

            @DefaultValue("30d") Duration failedJobsOlderThan) {

        /**
         * Returns the settings.
         *
         * @param prefix what the names of the worker's properties begin with
         * @throws InvalidConfigurationPropertyValueException if one is not allowed
         */
        CleanupSettings settings(String prefix, ZoneId zone) {
            boolean never = schedule == null || schedule.isBlank() || schedule.equals("-");
            try {
                return new CleanupSettings(never ? null : schedule, zone, tasks, failedJobsOlderThan);
            } catch (IllegalArgumentException e) {
                throw refused(prefix + ".cleanup.", this, e);
            }
        }
    }

    /**
     * What is kept of the steps of jobs, and of the signals that jobs wait for.
     *
     * @param maxResultSize Largest result of a step, as JSON, 1B to 64MB. A job with a larger one fails permanently.
     * @param keepSignals How long signals are kept for which no job waits, unless their senders give another time, 1 second to 3650 days.
     * @since 0.1.0
     */
    public record Steps(
            @DefaultValue("1MB") DataSize maxResultSize,
            @DefaultValue("7d") Duration keepSignals) {

        /**
         * Returns the settings.
         *
         * @param prefix what the names of the worker's properties begin with
         * @throws InvalidConfigurationPropertyValueException if one is out of its range
         */
        StepSettings settings(String prefix) {
            try {
                int bytes = (int) Math.max(-1, Math.min(Integer.MAX_VALUE, maxResultSize.toBytes()));
                return new StepSettings(bytes, keepSignals);
            } catch (IllegalArgumentException e) {
                throw refused(prefix + ".steps.", this, e);
            }
        }
    }

    /**
     * What applies to the jobs of a task unless code says otherwise.
     *
     * @param maxAttempts Maximum number of attempts of jobs that this application adds with JobScheduler, 1 to 32767.
     * @param priority Priority of jobs that this application adds with JobScheduler, -32768 to 32767; lower numbers run first.
     * @param timeout Timeout of an attempt in this application.
     * @param backOff How long a job waits after an attempt that failed in this application.
     * @since 0.1.0
     */
    public record TaskDefaults(
            @Nullable Integer maxAttempts,
            @Nullable Integer priority,
            @Nullable Duration timeout,
            @Nullable BackOff backOff) {

        /**
         * How long a job waits after a failed attempt.
         *
         * @param delay Delay after the first attempt.
         * @param multiplier Factor by which the delay grows after each further attempt, at least 1.
         * @param maxDelay Longest delay.
         * @since 0.1.0
         */
        public record BackOff(
                @DefaultValue("1s") Duration delay,
                @DefaultValue("2") double multiplier,
                @DefaultValue("6h") Duration maxDelay) {}
    }

    /**
     * How handlers are ended whose jobs are cancelled.
     *
     * @param interruptAfter Time that a handler has to end by itself after its job has been cancelled, before its thread is
     *     interrupted, 0 to 365 days. JobContext.isCancelled() returns true at once.
     * @param abandonAfter Time that a handler has to end after its interrupt, before the worker abandons it, 0 to 365 days.
     * @since 0.1.0
     */
    public record Cancel(
            @DefaultValue("0s") Duration interruptAfter,
            @DefaultValue("5s") Duration abandonAfter) {

        /**
         * Returns the settings.
         *
         * @param prefix what the names of the worker's properties begin with
         * @throws InvalidConfigurationPropertyValueException if one is not allowed
         */
        CancelSettings settings(String prefix) {
            try {
                return new CancelSettings(interruptAfter, abandonAfter);
            } catch (IllegalArgumentException e) {
                throw refused(prefix + ".cancel.", this, e);
            }
        }
    }

    /**
     * A limit across all workers of the schema, of running jobs or of starts in a period; or fair shares. If an
     * annotation declares a limit of the same name, the properties replace its attributes.
     *
     * @param tasks Tasks that share the limit. Those of handlers whose annotations name the limit need not be listed.
     * @param maxRunning Number of jobs that run at the same time, 1 to 1000000.
     * @param maxStarts Number of jobs that start in a period, 1 to 1000000.
     * @param period The period, 1 second to 365 days.
     * @param burst Number of jobs that may start at once after a time without any. By default what half a second brings, and
     *     at least what a tenth of a second does, but never less than 1.
     * @param per Field of the payload, each value of which has the limit for itself, such as tenant or customer.id.
     * @param weights Fair shares: what values of the field weigh, 0.01 to 100. Those that are not named weigh 1.
     * @since 0.1.0
     */
    public record LimitProperties(
            @DefaultValue List<String> tasks,
            @Nullable Integer maxRunning,
            @Nullable Integer maxStarts,
            @Nullable Duration period,
            @Nullable Integer burst,
            @Nullable String per,
            @Nullable Map<String, Double> weights) {

        /**
         * Returns the limit.
         *
         * @param property what the names of these properties begin with
         * @param declared what annotations declare under the name; null for nothing
         * @throws InvalidConfigurationPropertyValueException if one is not allowed or does not fit another
         */
        Limit limit(String property, String name, @Nullable Limit declared) {
            Map<String, @Nullable Object> all = new HashMap<>(declared == null ? Map.of() : declared.attributes());
            if (maxStarts != null || period != null) {
                all.remove("burst");
            }
            Set<String> sharing = new TreeSet<>(tasks);
            sharing.addAll(declared == null ? Set.of() : declared.tasks());
            all.put("tasks", sharing);
            Map<String, @Nullable Object> given = new HashMap<>();
            given.put("maxRunning", maxRunning);
            given.put("maxStarts", maxStarts);
            given.put("period", period);
            given.put("burst", burst);
            given.put("per", per);
            given.put("weights", weights);
            given.values().removeIf(Objects::isNull);
            all.putAll(given);
            try {
                return LimitAttributes.limit(name, all);
            } catch (IllegalArgumentException e) {
                throw refused(property + ".", this, e);
            }
        }
    }

    /** The message of the exception begins with the name of the setting. */
    private static InvalidConfigurationPropertyValueException refused(
            String prefix, Object value, IllegalArgumentException e) {
        String message = String.valueOf(e.getMessage());
        String property = DataObjectPropertyName.toDashedForm(message.split("[ \\[]", 2)[0]);
        return new InvalidConfigurationPropertyValueException(prefix + property, value, sentence(message));
    }

    /**
     * Returns the name of the schema.
     *
     * @param prefix what the names of these properties begin with
     * @throws InvalidConfigurationPropertyValueException if it is not allowed
     */
    WorkerSchema workerSchema(String prefix) {
        try {
            return new WorkerSchema(schema.name());
        } catch (IllegalArgumentException e) {
            throw new InvalidConfigurationPropertyValueException(
                    prefix + ".schema.name", schema.name(), sentence(e.getMessage()));
        }
    }

    /**
     * Returns the settings of the worker.
     *
     * @param prefix what the names of these properties begin with
     * @throws InvalidConfigurationPropertyValueException if one is out of its range
     */
    WorkerSettings workerSettings(String prefix) {
        WorkerSettings.Builder settings = WorkerSettings.builder();
        if (concurrency != null) {
            set(settings, WorkerSettings.Builder::concurrency, prefix + ".concurrency", concurrency);
        }
        set(settings, WorkerSettings.Builder::localQueueSize, prefix + ".local-queue.size", localQueue.size());
        set(settings, WorkerSettings.Builder::localQueueTtl, prefix + ".local-queue.ttl", localQueue.ttl());
        set(settings, WorkerSettings.Builder::queueRunLimit, prefix + ".queue-run-limit", queueRunLimit);
        set(settings, WorkerSettings.Builder::vacuum, prefix + ".vacuum", vacuum);
        set(settings, WorkerSettings.Builder::statistics, prefix + ".statistics.enabled", statistics.enabled());
        set(settings, WorkerSettings.Builder::pollInterval, prefix + ".poll-interval", pollInterval);
        set(settings, WorkerSettings.Builder::listen, prefix + ".listen.enabled", listen.enabled());
        set(
                settings,
                WorkerSettings.Builder::shutdownGracePeriod,
                prefix + ".shutdown.grace-period",
                shutdown.gracePeriod());
        set(
                settings,
                WorkerSettings.Builder::interruptedJobRetryDelay,
                prefix + ".shutdown.interrupted-job-retry-delay",
                shutdown.interruptedJobRetryDelay());
        return settings.recovery(recovery.settings(prefix))
                .history(history.settings(prefix))
                .results(results.settings(prefix))
                .cleanup(cleanup.settings(prefix, crontabZone))
                .cancel(cancel.settings(prefix))
                .steps(steps.settings(prefix))
                .build();
    }

    /** Sets one value after trying it alone, so that a refusal is known to be about this property. */
    private static <T> void set(
            WorkerSettings.Builder settings,
            BiFunction<WorkerSettings.Builder, T, WorkerSettings.Builder> setter,
            String property,
            T value) {
        try {
            WorkerSettings unused =
                    setter.apply(WorkerSettings.builder(), value).build();
        } catch (IllegalArgumentException e) {
            throw new InvalidConfigurationPropertyValueException(property, value, sentence(e.getMessage()));
        }
        WorkerSettings.Builder unused = setter.apply(settings, value);
    }

    private static String sentence(@Nullable String message) {
        return message + ".";
    }
}
