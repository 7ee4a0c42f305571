package dev.pgworker;

import java.time.Duration;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.stream.Stream;
import javax.sql.DataSource;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.micrometer.observation.ObservationRegistry;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.scheduling.config.ScheduledTask;
import org.springframework.transaction.PlatformTransactionManager;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.Crontab;
import dev.pgworker.event.WorkerEvent;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.flow.JobFlows;
import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.client.JdbcJobFlows;
import dev.pgworker.internal.crontab.CronPlan;
import dev.pgworker.internal.failure.Backoff;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.jdbc.PrivateConnections;
import dev.pgworker.internal.schedule.SchedulePlan;
import dev.pgworker.internal.watch.MessageArrival;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.job.Task;
import dev.pgworker.limit.JobLimits;
import dev.pgworker.limit.Limit;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.BatchTaskHandler;
import dev.pgworker.task.DeclaredTask;
import dev.pgworker.task.ForbiddenFlags;
import dev.pgworker.task.JobInterceptor;
import dev.pgworker.task.JobRecoveryHandler;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.TaskHandler;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.task.TaskRegistry;

/**
 * Claims and runs the jobs of the tasks that it serves. Thread-safe.
 *
 * <p>A worker can be started and stopped any number of times; each start registers under a new id. If it cannot send a
 * heartbeat for as long as other workers wait before they recover its jobs, it interrupts its handlers and restarts
 * itself under a new id. It does not install the schema; see {@link dev.pgworker.schema.SchemaMigrator}.
 *
 * @since 0.1.0
 */
public final class Worker implements AutoCloseable {

    private static final Logger log = WorkerLog.of(Worker.class);

    private final WorkerParts parts;

    /** Written under the lock, read without it: a stop takes long, and callers must not wait meanwhile. */
    private volatile @Nullable RunningWorker running;

    /** Set while the worker cannot start over. */
    private volatile boolean failed;

    @GuardedBy("this") private boolean advised;

    private Worker(WorkerParts parts) {
        this.parts = parts;
    }

    /**
     * Returns a builder for a worker that takes its connections from the given data source. These are up to four for short
     * periods, and a fifth while many jobs are due; one permanently and another for short periods unless a {@link
     * Builder#privateDataSource} is set; and one for each transactional handler while it runs. {@link
     * #connectionsNeeded} returns the total.
     */
    public static Builder builder(DataSource dataSource) {
        return new Builder(dataSource);
    }

    /**
     * Starts the worker and returns immediately. Does nothing if the worker is already running. The database does not
     * have to be reachable. The worker's threads register it and what it declares; {@link #awaitStarted} waits for them, and
     * {@link WorkerStatus#starting} shows what is not done yet.
     */
    public synchronized void start() {
        if (running == null) {
            if (!parts.settings().recovery().enabled() && !advised) {
                advised = true;
                log.info(
                        "pgworker.recovery.enabled is false: jobs of a worker that is killed stay locked for four hours,"
                                + " or until they are recovered manually");
            }
            running = startRun();
            failed = false;
        }
    }

    /**
     * Waits until the running worker has started. A worker has started when
     *
     * <ul>
     *   <li>it is registered, so that {@link dev.pgworker.job.JobQueries#registeredWorkers} returns it,
     *   <li>it receives notifications, unless {@link WorkerSettings#listen} is false, and looks for jobs,
     *   <li>all items of its crontab are registered, and
     *   <li>the schedules and limits that it declares are in the database. One that the database refuses is logged as an
     *       error and left out.
     * </ul>
     *
     * <p>Returns early, with false, if the worker is not running or is stopped, and while the database cannot be used: the worker
     * continues by itself when it can.
     *
     * @param limit how long to wait at most; zero or less asks without waiting
     * @return whether the worker has started
     * @throws InterruptedException if the calling thread is interrupted, which does not affect the worker
     */
    public boolean awaitStarted(Duration limit) throws InterruptedException {
        Arguments.requireNonNull("limit", limit);
        RunningWorker current = running;
        return current != null && current.awaitStarted(limit);
    }

    private RunningWorker startRun() {
        RunningWorker fresh = new RunningWorker(
                parts, this::replaceInBackground, () -> stopInBackground("the schema has been migrated"));
        try {
            fresh.start();
        } catch (Error e) {
            // No thread can be had, for example: those that have started must not stay behind.
            fresh.stop();
            throw e;
        }
        return fresh;
    }

    private void replaceInBackground(RunningWorker lost) {
        // Not a daemon: between two runs it is what keeps an application alive that does nothing but work.
        Thread thread = new Thread(() -> replace(lost), "worker-restart");
        thread.setDaemon(false);
        thread.start();
    }

    /** Waits without the lock for the lost run to end, which may take as long as an outage, and starts another one. */
    private void replace(RunningWorker lost) {
        try {
            if (!lost.abandon()) {
                return;
            }
        } catch (RuntimeException | Error e) {
            log.error("The lost worker {} could not end cleanly; its jobs are left to recovery", lost.id(), e);
        }
        Backoff backoff = new Backoff();
        while (!startOver(lost)) {
            try {
                Thread.sleep(backoff.next().toMillis());
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return;
            }
        }
    }

    /** Returns false if that has to be tried again, because no thread can be had, for example. */
    private synchronized boolean startOver(RunningWorker lost) {
        if (running != lost) {
            return true;
        }
        try {
            RunningWorker fresh = startRun();
            running = fresh;
            failed = false;
            fresh.publish(new WorkerEvent.WorkerReplaced(fresh.id(), lost.id()));
            return true;
        } catch (RuntimeException | Error e) {
            log.error("The worker could not restart; it keeps trying", e);
            failed = true;
            return false;
        }
    }

    /**
     * Stops the worker. It stops claiming jobs, releases jobs that have not been started, waits for running handlers
     * and interrupts them when the grace period has elapsed, writes the outcomes, and deregisters the worker. Returns when
     * all of this is done, or after {@link WorkerSettings#stopLimit}. Does nothing if the worker is not running.
     *
     * <p>A handler that calls this method is interrupted with the others when the grace period has elapsed, and the
     * stop continues without it. A direct listener must not call this method, because the stop would wait for the
     * listener until a time limit is reached; have another thread call it instead.
     */
    public synchronized void stop() {
        RunningWorker stopping = running;
        if (stopping != null) {
            stopping.stop();
            running = null;
        }
    }

    /** As {@link #stop}. */
    @Override
    public void close() {
        stop();
    }

    /** Returns true if the worker has been started and not stopped since. */
    public boolean isRunning() {
        return running != null;
    }

    /** Returns true while the worker cannot restart after it was considered dead; it keeps trying. */
    public boolean hasFailed() {
        return failed;
    }

    /** Returns the identifiers of the tasks that the worker serves, as an unmodifiable set. */
    public Set<String> tasks() {
        return parts.tasks().identifiers();
    }

    /** Returns the worker's recurring jobs, each with the time zone that applies to it, as an unmodifiable list. */
    public List<CronItem> cronItems() {
        return parts.cron().items();
    }

    /** Returns the schedules that the worker declares, as an unmodifiable list. */
    public List<Schedule> declaredSchedules() {
        return parts.schedules().declared();
    }

    /** Returns all recurring jobs of the worker's schema. The worker does not have to be running. */
    public RecurringJobs recurringJobs() {
        return WorkerClient.recurringJobs(
                parts.dataSource(), parts.schema(), parts.codec(), parts.jobScheduler(), this::cronItems);
    }

    /** Returns what adds flows of jobs to the worker's schema. The worker does not have to be running. */
    public JobFlows jobFlows() {
        return new JdbcJobFlows(parts.dataSource(), parts.schema(), parts.codec(), parts.jobScheduler());
    }

    /** Returns the limits that the worker declares, as an unmodifiable list. */
    public List<Limit> declaredLimits() {
        return parts.limits();
    }

    /** Returns the limits of the worker's schema, those that any application has made. The worker does not have to be running. */
    public JobLimits jobLimits() {
        List<WorkerEventListener> listeners = Stream.concat(
                        parts.directListeners().stream(), parts.listeners().stream())
                .toList();
        return WorkerClient.jobLimits(parts.dataSource(), parts.schema(), () -> listeners);
    }

    /**
     * Returns the maximum number of connections that the worker takes from its data source at the same time. These
     * are its own and, if a handler is transactional, one for each job that can run concurrently. Connections that handlers
     * take themselves are not included.
     */
    public int connectionsNeeded() {
        return parts.connectionsNeeded();
    }

    /** Returns true if the worker takes the listener connection from its data source, and keeps it while it runs. */
    public boolean isListeningOnDataSource() {
        return parts.settings().listen() && parts.listenDataSource() == parts.dataSource();
    }

    /** Returns the id under which the running worker locks jobs, or null if the worker is not running. */
    public @Nullable String id() {
        RunningWorker current = running;
        return current == null ? null : current.id();
    }

    /**
     * Returns the status of the running worker, or null if the worker is not running. Takes microseconds and never
     * blocks.
     */
    public @Nullable WorkerStatus status() {
        RunningWorker current = running;
        return current == null ? null : current.status();
    }

    /**
     * Returns what the running worker does from time to time: tasks of a scheduler of Spring's that is the worker's
     * own. Each describes by {@link ScheduledTask#toString} what it does, such as {@code worker: sweep for dead
     * workers}, and when it has been executed and will be. Cancelling one impairs the worker.
     *
     * @return an unmodifiable set, empty if the worker is not running
     */
    public Set<ScheduledTask> scheduledTasks() {
        RunningWorker current = running;
        return current == null ? Set.of() : current.scheduledTasks();
    }

    /**
     * Runs every job that is due, including those that become due in the meantime, and returns when none is left.
     * Handlers run on the handler executor, as many at a time as the concurrency allows. Intended for tests and
     * scripts. The worker does not have to be started, but may be.
     *
     * @return the number of jobs that were run, successfully or not
     * @throws org.springframework.dao.DataAccessException if the database cannot be used
     * @throws InterruptedException if the calling thread is interrupted; running jobs are then treated as when the
     *     worker is stopped
     */
    public long runOnce() throws InterruptedException {
        return RunningWorker.once(parts);
    }

    private void stopInBackground(String reason) {
        log.error("The worker stops because {}", reason);
        Thread thread = new Thread(this::stop, "worker-stop");
        thread.start();
    }

    /**
     * Builds a {@link Worker}. Not thread-safe.
     *
     * @since 0.1.0
     */
    public static final class Builder {

        private final DataSource dataSource;
        private @Nullable DataSource listenDataSource;
        private @Nullable DataSource privateDataSource;
        private WorkerSchema schema = WorkerSchema.DEFAULT;
        private WorkerSettings settings = WorkerSettings.builder().build();
        private @Nullable Boolean statistics;
        private @Nullable PayloadCodec codec;
        private @Nullable JobScheduler jobScheduler;
        private @Nullable Executor handlerExecutor;
        private @Nullable PlatformTransactionManager transactionManager;
        private @Nullable ForbiddenFlags forbiddenFlags;
        private final List<TaskRegistration> tasks = new ArrayList<>();
        private final List<DeclaredTask> declaredTasks = new ArrayList<>();
        private final List<WorkerEventListener> listeners = new ArrayList<>();
        private final List<WorkerEventListener> directListeners = new ArrayList<>();
        private final List<JobInterceptor> jobInterceptors = new ArrayList<>();
        private final List<ScheduleInterceptor> scheduleInterceptors = new ArrayList<>();
        private final List<CronItem> cronItems = new ArrayList<>();
        private final List<Crontab> crontabs = new ArrayList<>();
        private final List<Schedule> schedules = new ArrayList<>();
        private final Map<String, Limit> limits = new LinkedHashMap<>();
        private ZoneId crontabZone = ZoneOffset.UTC;
        private final List<JobRecoveryHandler> recoveryHandlers = new ArrayList<>();
        private String name = "worker";
        private ObservationRegistry observationRegistry = ObservationRegistry.NOOP;
        private Duration reconcileInterval = Duration.ofMinutes(1);
        private Duration stallAfter = Duration.ofSeconds(30);
        private Duration stuckAfter = Duration.ofMinutes(2);

        private Builder(DataSource dataSource) {
            this.dataSource = Arguments.requireNonNull("dataSource", dataSource);
        }

        /** Sets the database schema. The default is {@code graphile_worker}. */
        public Builder schema(WorkerSchema schema) {
            this.schema = Arguments.requireNonNull("schema", schema);
            return this;
        }

        /** Sets whether the worker records statistics, whatever its {@linkplain #settings settings} are. */
        public Builder statistics(boolean recorded) {
            this.statistics = recorded;
            return this;
        }

        /** Sets the settings of the worker. The default is {@code WorkerSettings.builder().build()}. */
        public Builder settings(WorkerSettings settings) {
            this.settings = Arguments.requireNonNull("settings", settings);
            return this;
        }

        /** Sets how often to look at all jobs for some that the worker holds without knowing it; for tests. */
        Builder reconcileInterval(Duration reconcileInterval) {
            this.reconcileInterval = reconcileInterval;
            return this;
        }

        /**
         * Sets when to report a problem; for tests.
         *
         * @param stallAfter how long a due job may wait although a handler is free
         * @param stuckAfter how long a thread of the worker may be at one thing
         */
        Builder patience(Duration stallAfter, Duration stuckAfter) {
            this.stallAfter = stallAfter;
            this.stuckAfter = stuckAfter;
            return this;
        }

        /**
         * Sets the data source of the listener connection, for example one that bypasses a connection pooler. With a
         * {@code PGSimpleDataSource} that does not set a {@code socketFactory}, jobs start about a millisecond sooner
         * than with other data sources, and a flood of notifications, which any role that may connect to the database
         * can send, does not exhaust the memory.
         */
        public Builder listenDataSource(@Nullable DataSource listenDataSource) {
            this.listenDataSource = listenDataSource;
            return this;
        }

        /**
         * Sets the data source of the heartbeat's connection, and of the listener connection unless a {@link
         * #listenDataSource} is set. With a separate data source, neither has to wait when handlers use all connections
         * of a pool. The heartbeat keeps its connection open. The data source should open a new connection at each
         * call, with connect and socket timeouts of a few seconds. The default is the worker's data source, which is
         * also used while the server refuses these connections.
         */
        public Builder privateDataSource(@Nullable DataSource privateDataSource) {
            this.privateDataSource = privateDataSource;
            return this;
        }

        /** Sets the codec that reads and writes payloads. The default uses a plain {@code JsonMapper}. */
        public Builder codec(PayloadCodec codec) {
            this.codec = codec;
            return this;
        }

        /**
         * Sets the scheduler that handlers get from their context. The default is a scheduler on the worker's data
         * source.
         */
        public Builder jobScheduler(JobScheduler jobScheduler) {
            this.jobScheduler = jobScheduler;
            return this;
        }

        /**
         * Sets the executor that runs the handlers, for example on virtual threads. It must be able to run as many
         * tasks at a time as the concurrency allows. The worker does not shut it down. By default, handlers run on
         * threads of the worker.
         */
        public Builder handlerExecutor(@Nullable Executor handlerExecutor) {
            this.handlerExecutor = handlerExecutor;
            return this;
        }

        /** Sets the transaction manager of transactional handlers. It must manage the worker's data source. */
        public Builder transactionManager(@Nullable PlatformTransactionManager transactionManager) {
            this.transactionManager = transactionManager;
            return this;
        }

        /** Sets the flags of jobs that this worker does not run. By default, it runs all jobs. */
        public Builder forbiddenFlags(ForbiddenFlags forbiddenFlags) {
            this.forbiddenFlags = forbiddenFlags;
            return this;
        }

        /** Adds tasks. */
        public Builder tasks(Collection<TaskRegistration> tasks) {
            this.tasks.addAll(Arguments.requireList("tasks", tasks));
            return this;
        }

        /**
         * Adds task constants of the application. The handlers of these tasks must accept their payload types.
         *
         * @see DeclaredTask#in
         */
        public Builder declaredTasks(Collection<DeclaredTask> declaredTasks) {
            this.declaredTasks.addAll(Arguments.requireList("declaredTasks", declaredTasks));
            return this;
        }

        /** Adds a task whose handler is a function. */
        public <P> Builder task(Task<P> task, TaskHandler<P> handler) {
            tasks.add(TaskRegistration.of(task, handler));
            return this;
        }

        /** Adds a task whose handler is a function on a list of items, each of which may fail separately. */
        public <T> Builder batchTask(Task<List<T>> task, BatchTaskHandler<T> handler) {
            tasks.add(TaskRegistration.ofBatch(task, handler));
            return this;
        }

        /** Adds a listener that is called on the thread {@code worker-events} and never slows down the worker. */
        public Builder listener(WorkerEventListener listener) {
            listeners.add(Arguments.requireNonNull("listener", listener));
            return this;
        }

        /**
         * Adds a listener that is called on the worker's own threads, as documented for each event, and receives every
         * event. It must return within microseconds and must not block, because it slows down the worker.
         */
        public Builder directListener(WorkerEventListener listener) {
            directListeners.add(Arguments.requireNonNull("listener", listener));
            return this;
        }

        /** Adds an interceptor that wraps each run of a handler, inside the interceptors added before it. */
        public Builder jobInterceptor(JobInterceptor interceptor) {
            jobInterceptors.add(Arguments.requireNonNull("interceptor", interceptor));
            return this;
        }

        /**
         * Adds an interceptor for the jobs of recurring items, called before each job is added and after the
         * interceptors added before it. A {@code JobScheduler} has its own interceptors; see {@link WorkerClient}.
         */
        public Builder scheduleInterceptor(ScheduleInterceptor interceptor) {
            scheduleInterceptors.add(Arguments.requireNonNull("interceptor", interceptor));
            return this;
        }

        /** Adds a handler that decides what happens to the jobs that this worker recovers from dead workers. */
        public Builder recoveryHandler(JobRecoveryHandler recoveryHandler) {
            recoveryHandlers.add(Arguments.requireNonNull("recoveryHandler", recoveryHandler));
            return this;
        }

        /** Adds recurring jobs: items, and schedules as {@link #schedules} does. Their tasks may be served by other workers. */
        public Builder crontab(Crontab crontab) {
            cronItems.addAll(Arguments.requireNonNull("crontab", crontab).items());
            crontabs.add(crontab);
            return this;
        }

        /** Adds a recurring job. */
        public Builder cronItem(CronItem item) {
            cronItems.add(Arguments.requireNonNull("item", item));
            return this;
        }

        /**
         * Adds schedules that the application declares. Each start of the worker puts them into the database, as {@link
         * dev.pgworker.schedule.RecurringJobs#put} would, and only workers that declare a name execute the schedule that it
         * declares. One that no application declares any more stays in the database and is not executed.
         */
        public Builder schedules(Collection<Schedule> schedules) {
            this.schedules.addAll(Arguments.requireList("schedules", schedules));
            return this;
        }

        /**
         * Adds limits that the application declares. Each start of the worker puts them into the database, as {@link
         * dev.pgworker.limit.JobLimits#put} would, before it starts jobs of their tasks. One that no application
         * declares any more stays in effect until it is deleted.
         *
         * @throws IllegalArgumentException if two have the same name
         */
        public Builder limits(Collection<Limit> limits) {
            for (Limit limit : Arguments.requireList("limits", limits)) {
                Limit before = this.limits.put(limit.name(), limit);
                if (before != null) {
                    throw new IllegalArgumentException(
                            "limits must have different names, but there are " + before + " and " + limit);
                }
            }
            return this;
        }

        /** Sets the time zone of recurring jobs that do not specify one. The default is UTC. */
        public Builder crontabZone(ZoneId crontabZone) {
            this.crontabZone = Arguments.requireNonNull("crontabZone", crontabZone);
            return this;
        }

        /**
         * Sets what the names of the worker's periodic tasks begin with. The default is {@code "worker"}.
         *
         * @see Worker#scheduledTasks
         */
        public Builder name(String name) {
            this.name = Arguments.requireNonNull("name", name);
            return this;
        }

        /**
         * Sets the registry that observes each execution of a periodic task of the worker, as {@code
         * tasks.scheduled.execution}. By default, they are not observed. What handlers of the registry throw does not
         * affect the worker.
         *
         * @see Worker#scheduledTasks
         */
        public Builder observationRegistry(ObservationRegistry observationRegistry) {
            this.observationRegistry = Arguments.requireNonNull("observationRegistry", observationRegistry);
            return this;
        }

        /**
         * Builds the worker, without starting it.
         *
         * @throws dev.pgworker.task.HandlerDefinitionException if two tasks have the same identifier, if the payload
         *     type of a task constant does not match that of the handler of its task, or if a handler is transactional
         *     and there is no transaction manager
         * @throws dev.pgworker.crontab.CrontabException if two recurring jobs have the same identifier
         * @throws IllegalArgumentException if the payload of a recurring job does not serialize to a JSON object
         */
        public Worker build() {
            TaskRegistry registry = TaskRegistry.of(tasks);
            registry.requireTypesOf(declaredTasks);
            if (transactionManager == null) {
                registry.requireNoneTransactional();
            }
            PayloadCodec usedCodec = codec == null ? new PayloadCodec(new JsonMapper()) : codec;
            warnOfUnservedTasks(registry);
            JobScheduler usedScheduler = jobScheduler == null
                    ? WorkerClient.jobScheduler(dataSource, schema, usedCodec, List::of, settings.results())
                    : jobScheduler;
            return new Worker(new WorkerParts(
                    dataSource,
                    usedListenDataSource(),
                    privateDataSource,
                    schema,
                    statistics == null ? settings : settings.withStatistics(statistics),
                    registry,
                    usedCodec,
                    usedScheduler,
                    handlerExecutor,
                    transactionManager,
                    forbiddenFlags,
                    List.copyOf(listeners),
                    List.copyOf(directListeners),
                    List.copyOf(jobInterceptors),
                    CronPlan.of(Crontab.of(cronItems), crontabZone, usedCodec).with(List.copyOf(scheduleInterceptors)),
                    new SchedulePlan(declaredSchedules(), usedCodec, scheduleInterceptors),
                    List.copyOf(limits.values()),
                    List.copyOf(recoveryHandlers),
                    new WorkerParts.PeriodicNaming(name, observationRegistry),
                    reconcileInterval,
                    stallAfter,
                    stuckAfter));
        }

        private List<Schedule> declaredSchedules() {
            return Stream.concat(
                            crontabs.stream()
                                    .flatMap(crontab -> crontab.withDefaultZone(crontabZone).schedules().stream()),
                            schedules.stream())
                    .toList();
        }

        private DataSource usedListenDataSource() {
            if (listenDataSource != null) {
                return MessageArrival.promptly(listenDataSource);
            }
            return privateDataSource == null
                    ? dataSource
                    : PrivateConnections.of(MessageArrival.promptly(privateDataSource), dataSource);
        }

        private void warnOfUnservedTasks(TaskRegistry registry) {
            for (CronItem item : cronItems) {
                if (!registry.identifiers().contains(item.task())) {
                    log.warn(
                            "Cron item {} is for task {}, which this worker does not serve: its jobs wait for another worker",
                            item.identifier(),
                            item.task());
                }
            }
            for (Schedule schedule : declaredSchedules()) {
                if (!registry.identifiers().contains(schedule.job().identifier())) {
                    log.warn(
                            "Schedule {} is for task {}, which this worker does not serve: its jobs wait for another worker",
                            schedule.name(),
                            schedule.job().identifier());
                }
            }
        }
    }
}
