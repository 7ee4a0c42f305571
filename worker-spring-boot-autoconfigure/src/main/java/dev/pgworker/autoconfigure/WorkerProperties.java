package dev.pgworker.autoconfigure;

import java.time.Duration;
import java.time.ZoneId;
import java.util.List;
import java.util.function.BiFunction;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.core.io.Resource;

import dev.pgworker.WorkerSettings;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.schema.PeerIndexes;
import dev.pgworker.schema.SchemaMode;
import dev.pgworker.schema.WorkerSchema;

/**
 * The properties of PgWorker.
 *
 * @param enabled Whether this application runs jobs. If not, it can still add them.
 * @param concurrency How many jobs run at the same time, 1 to 10000. Unless set, the number of processors, but at
 *     least 2.
 * @param localQueue Jobs that are claimed before a handler is free for them.
 * @param queueRunLimit How many jobs of one named queue may be claimed at a time, 1 to 1000, if their handler is fast; they
 *     run one after the other.
 * @param pollInterval How often to look for jobs although nothing announced any.
 * @param vacuum Whether the worker vacuums the table of jobs every few seconds while it finishes many.
 * @param forbiddenFlags Flags whose jobs are passed over.
 * @param crontab Recurring jobs, one a line, in the format of a Graphile Worker crontab.
 * @param crontabFile Resource with more recurring jobs in the same format.
 * @param crontabZone Time zone of recurring jobs that name none.
 * @param crontabStrict Whether crontab texts are refused that other Graphile Workers would not understand.
 * @param shutdown How the worker stops.
 * @param schema The database schema that holds the jobs.
 * @param listen The connection that listens for notifications.
 * @param recovery How dead workers are told from living ones, and what becomes of their jobs.
 */
@ConfigurationProperties("worker")
public record WorkerProperties(
        @DefaultValue("true") boolean enabled,
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
        @DefaultValue Recovery recovery) {

    /**
     * Jobs that are claimed before a handler is free for them.
     *
     * @param size How many jobs may be claimed before a handler is free for them, 0 to 10000, if handlers are fast.
     * @param ttl How long a claimed job may wait for a handler before it is given back.
     */
    public record LocalQueue(
            @DefaultValue("1000") int size,
            @DefaultValue("1s") Duration ttl) {}

    /**
     * How the worker stops.
     *
     * @param gracePeriod How long running jobs may go on when the application stops, before they are interrupted.
     * @param interruptedJobRetryDelay When a job that was interrupted by a stop runs again.
     */
    public record Shutdown(
            @DefaultValue("5s") Duration gracePeriod,
            @DefaultValue("30s") Duration interruptedJobRetryDelay) {}

    /**
     * The database schema that holds the jobs.
     *
     * @param name Name of the schema: lower-case letters, digits and underscores.
     * @param mode What happens to the schema at startup.
     * @param peerIndexes Whether the indexes that only Node.js and Rust workers fetch with are kept: where their installation
     *     was adopted, always or never.
     * @param startupTimeout How long to wait at startup for a server that is starting up itself.
     * @param url JDBC URL for migrating the schema. Unless set, the application's.
     * @param user User that migrates the schema. Unless set, the application's.
     * @param password Password of the user that migrates the schema. Unless set, the application's.
     */
    public record Schema(
            @DefaultValue("graphile_worker") String name,
            @DefaultValue("migrate") SchemaMode mode,
            @DefaultValue("auto") PeerIndexes peerIndexes,
            @DefaultValue("1m") Duration startupTimeout,
            @Nullable String url,
            @Nullable String user,
            @Nullable String password) {

        /** Leaves the password out. */
        @Override
        public String toString() {
            return "Schema[name=" + name + ", mode=" + mode + ", peerIndexes=" + peerIndexes + ", startupTimeout="
                    + startupTimeout + ", url=" + url + ", user=" + user + "]";
        }
    }

    /**
     * The connection that listens for notifications. With any of these set, it is opened apart from the application's
     * pool, for instance past a connection pooler that does not pass notifications on.
     *
     * @param url JDBC URL of the listening connection. Unless set, the application's.
     * @param user User of the listening connection. Unless set, the application's.
     * @param password Password of the user of the listening connection. Unless set, the application's.
     */
    public record Listen(
            @Nullable String url,
            @Nullable String user,
            @Nullable String password) {

        /** Leaves the password out. */
        @Override
        public String toString() {
            return "Listen[url=" + url + ", user=" + user + "]";
        }
    }

    /**
     * How dead workers are told from living ones, and what becomes of their jobs.
     *
     * @param enabled Whether this worker looks for dead ones and takes their jobs from them.
     * @param orphans Whether it also takes jobs from workers that are not registered at all, as Rust workers with recovery
     *     turned off. The jobs of one that lives would run twice.
     * @param heartbeatInterval How often the worker tells the database that it lives.
     * @param sweepInterval How often to look for dead workers.
     * @param sweepThreshold How old this worker's last heartbeat is when others take it for dead, at least twice the
     *     heartbeat interval. A worker that cannot send one for so long gives its jobs up by itself.
     * @param peerThreshold How old, at least, the last heartbeat of a dead worker is that publishes no threshold, as those
     *     written in Rust. The sweep threshold counts if it is greater.
     * @param recoveryDelay When a job taken from a dead worker runs again.
     * @param resilientSweepThresholdMultiplier What the threshold is multiplied by for workers that hold a job with one of
     *     the resilient flags, 1 to 1000.
     * @param resilientJobFlags Flags of jobs whose workers are waited for longer.
     * @param maxRecoveries How often a job is taken from dead workers without its attempt being counted, 0 to 1000.
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
         * @throws InvalidConfigurationPropertyValueException if one is out of its range or does not fit another
         */
        RecoverySettings settings() {
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
                String message = String.valueOf(e.getMessage());
                // The message begins with the name of the setting.
                String property = DataObjectPropertyName.toDashedForm(message.split("[ \\[]", 2)[0]);
                throw new InvalidConfigurationPropertyValueException(
                        "worker.recovery." + property, this, sentence(message));
            }
        }
    }

    /**
     * Returns the name of the schema.
     *
     * @throws InvalidConfigurationPropertyValueException if it is not allowed
     */
    WorkerSchema workerSchema() {
        try {
            return new WorkerSchema(schema.name());
        } catch (IllegalArgumentException e) {
            throw new InvalidConfigurationPropertyValueException(
                    "worker.schema.name", schema.name(), sentence(e.getMessage()));
        }
    }

    /**
     * Returns the settings of the worker.
     *
     * @throws InvalidConfigurationPropertyValueException if one is out of its range
     */
    WorkerSettings workerSettings() {
        WorkerSettings.Builder settings = WorkerSettings.builder();
        if (concurrency != null) {
            set(settings, WorkerSettings.Builder::concurrency, "worker.concurrency", concurrency);
        }
        set(settings, WorkerSettings.Builder::localQueueSize, "worker.local-queue.size", localQueue.size());
        set(settings, WorkerSettings.Builder::localQueueTtl, "worker.local-queue.ttl", localQueue.ttl());
        set(settings, WorkerSettings.Builder::queueRunLimit, "worker.queue-run-limit", queueRunLimit);
        set(settings, WorkerSettings.Builder::vacuum, "worker.vacuum", vacuum);
        set(settings, WorkerSettings.Builder::pollInterval, "worker.poll-interval", pollInterval);
        set(
                settings,
                WorkerSettings.Builder::shutdownGracePeriod,
                "worker.shutdown.grace-period",
                shutdown.gracePeriod());
        set(
                settings,
                WorkerSettings.Builder::interruptedJobRetryDelay,
                "worker.shutdown.interrupted-job-retry-delay",
                shutdown.interruptedJobRetryDelay());
        return settings.recovery(recovery.settings()).build();
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
