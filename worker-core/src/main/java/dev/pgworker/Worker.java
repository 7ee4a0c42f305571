package dev.pgworker;

import java.time.Duration;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executor;
import javax.sql.DataSource;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.transaction.PlatformTransactionManager;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.crontab.CronAdmin;
import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.Crontab;
import dev.pgworker.event.WorkerEvent;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.internal.client.CrontabControl;
import dev.pgworker.internal.crontab.CronPlan;
import dev.pgworker.internal.crontab.PlannedCronAdmin;
import dev.pgworker.internal.failure.Backoff;
import dev.pgworker.internal.jdbc.PrivateConnections;
import dev.pgworker.internal.watch.MessageArrival;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.job.Task;
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
 * Runs the jobs of the tasks it knows. Safe for use by many threads.
 *
 * <p>A worker may be started and stopped any number of times; each start registers under a fresh id. If it cannot prove
 * its life to others for as long as they wait before they take its jobs away, it interrupts its handlers and starts over
 * under a fresh id by itself. It does not install the schema: see {@link dev.pgworker.schema.SchemaMigrator}.
 *
 * @since 0.1.0
 */
public final class Worker implements AutoCloseable {

    private static final Logger log = LoggerFactory.getLogger(Worker.class);

    private final WorkerParts parts;

    /** Written under the lock, read without it: a stop takes long, and whoever asks meanwhile must not wait. */
    private volatile @Nullable RunningWorker running;

    /** Set while the worker cannot start over. */
    private volatile boolean failed;

    @GuardedBy("this") private boolean advised;

    private Worker(WorkerParts parts) {
        this.parts = parts;
    }

    /**
     * Returns a builder for a worker that takes its connections from the given data source: up to four for moments at a
     * time, and a fifth while much is due, one permanently and another one for moments unless there is a {@link Builder#privateDataSource}, and one for each
     * transactional handler while it runs. {@link #connectionsNeeded} counts them.
     */
    public static Builder builder(DataSource dataSource) {
        return new Builder(dataSource);
    }

    /** Starts the worker and returns at once; does nothing if it runs. The database need not be reachable. */
    public synchronized void start() {
        if (running == null) {
            if (!parts.settings().recovery().enabled() && !advised) {
                advised = true;
                log.info("worker.recovery.enabled is false: jobs of a worker that is killed stay locked for four hours,"
                        + " or until somebody recovers them");
            }
            running = startRun();
            failed = false;
        }
    }

    private RunningWorker startRun() {
        RunningWorker fresh = new RunningWorker(
                parts, this::replaceInBackground, () -> stopInBackground("the schema has been migrated"));
        try {
            fresh.start();
        } catch (Error e) {
            // No thread can be had, for instance: those that have started must not stay behind.
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
            log.error("The lost worker {} could not end properly; what it holds is left to recovery", lost.id(), e);
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

    /** Returns false if that has to be tried again, because no thread can be had, for instance. */
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
            log.error("The worker could not start over; it tries again", e);
            failed = true;
            return false;
        }
    }

    /**
     * Stops the worker: no further job is claimed, those not started are given back, running handlers are waited for
     * and finally interrupted, outcomes are written, and the worker is deregistered. Returns when all that is done, or
     * when {@link WorkerSettings#stopLimit} is over. Does nothing if the worker does not run.
     *
     * <p>A handler that calls this is interrupted with the others when the grace period is over, and the stop goes on without
     * it. A direct listener that calls it is waited for in vain: let another thread do it.
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

    /** Returns true between start and stop. */
    public boolean isRunning() {
        return running != null;
    }

    /** Returns true while the worker, which was lost, cannot start over; it goes on trying. */
    public boolean hasFailed() {
        return failed;
    }

    /** Returns the identifiers of the tasks that the worker serves, unmodifiable. */
    public Set<String> tasks() {
        return parts.tasks().identifiers();
    }

    /** Returns the worker's recurring jobs, each with the zone that applies to it, unmodifiable. */
    public List<CronItem> cronItems() {
        return parts.cron().items();
    }

    /** Returns the administration of recurring jobs, those of this worker and of others. The worker need not run. */
    public CronAdmin cronAdmin() {
        return new PlannedCronAdmin(
                parts.cron(), new CrontabControl(parts.dataSource(), parts.schema()), parts.jobScheduler());
    }

    /**
     * Returns how many connections of its data source the worker may have in use at the same time: one for each job that may
     * run, if a handler is transactional, and its own. What handlers take besides is not counted.
     */
    public int connectionsNeeded() {
        return parts.connectionsNeeded();
    }

    /** Returns true if the worker takes the connection that listens from its data source, and keeps it. */
    public boolean isListeningOnDataSource() {
        return parts.settings().listen() && parts.listenDataSource() == parts.dataSource();
    }

    /** Returns the id under which the running worker locks jobs, or null if it does not run. */
    public @Nullable String id() {
        RunningWorker current = running;
        return current == null ? null : current.id();
    }

    /** Returns how the running worker does, or null if it does not run. Takes microseconds and never waits. */
    public @Nullable WorkerStatus status() {
        RunningWorker current = running;
        return current == null ? null : current.status();
    }

    /**
     * Runs every job that is due, those included that become due while it runs, and returns when there is none left.
     * Handlers run on the handler executor, as many at a time as the concurrency allows. For tests and scripts; the
     * worker must not be started for it, and may be.
     *
     * @return how many jobs have been run, successfully or not
     * @throws org.springframework.dao.DataAccessException if the database cannot be used
     * @throws InterruptedException if the calling thread is interrupted; running jobs are then treated as by a stop
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
     * Builds a {@link Worker}. Not safe for use by several threads.
     *
     * @since 0.1.0
     */
    public static final class Builder {

        private final DataSource dataSource;
        private @Nullable DataSource listenDataSource;
        private @Nullable DataSource privateDataSource;
        private WorkerSchema schema = WorkerSchema.DEFAULT;
        private WorkerSettings settings = WorkerSettings.builder().build();
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
        private ZoneId crontabZone = ZoneOffset.UTC;
        private final List<JobRecoveryHandler> recoveryHandlers = new ArrayList<>();
        private Duration reconcileInterval = Duration.ofMinutes(1);
        private Duration stallAfter = Duration.ofSeconds(30);
        private Duration stuckAfter = Duration.ofMinutes(2);

        private Builder(DataSource dataSource) {
            this.dataSource = dataSource;
        }

        /** Sets the schema; {@code graphile_worker} unless set. */
        public Builder schema(WorkerSchema schema) {
            this.schema = schema;
            return this;
        }

        /** Sets how the worker works; the defaults unless set. */
        public Builder settings(WorkerSettings settings) {
            this.settings = settings;
            return this;
        }

        /** Sets how often to look at all jobs for some that the worker holds without knowing it; for tests. */
        Builder reconcileInterval(Duration reconcileInterval) {
            this.reconcileInterval = reconcileInterval;
            return this;
        }

        /**
         * Sets when to say that something is wrong; for tests.
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
         * Sets where the listening connection comes from, for instance past a connection pooler. From a copy of a {@code
         * PGSimpleDataSource} without a {@code socketFactory} of its own jobs start a millisecond sooner than from others.
         */
        public Builder listenDataSource(@Nullable DataSource listenDataSource) {
            this.listenDataSource = listenDataSource;
            return this;
        }

        /**
         * Sets where the heartbeat's connection comes from, and the listening one unless it has a {@link #listenDataSource}:
         * from apart, they wait for no handlers that have all connections of a pool in use. The heartbeat keeps its
         * connection open. The data source should open a connection at each call, with limits for connecting and for
         * reading of some seconds. The worker's data source unless set, and while the server refuses these connections.
         */
        public Builder privateDataSource(@Nullable DataSource privateDataSource) {
            this.privateDataSource = privateDataSource;
            return this;
        }

        /** Sets how payloads are read and written; a plain {@code JsonMapper} unless set. */
        public Builder codec(PayloadCodec codec) {
            this.codec = codec;
            return this;
        }

        /** Sets the scheduler that handlers get from their context; one on the data source unless set. */
        public Builder jobScheduler(JobScheduler jobScheduler) {
            this.jobScheduler = jobScheduler;
            return this;
        }

        /**
         * Sets what runs the handlers, for instance on virtual threads. It must be able to run as many tasks at a time
         * as the concurrency says, and is not shut down by the worker. Threads of the worker's own unless set.
         */
        public Builder handlerExecutor(@Nullable Executor handlerExecutor) {
            this.handlerExecutor = handlerExecutor;
            return this;
        }

        /** Sets what manages the transactions of transactional handlers; it has to work on the worker's data source. */
        public Builder transactionManager(@Nullable PlatformTransactionManager transactionManager) {
            this.transactionManager = transactionManager;
            return this;
        }

        /** Sets which jobs not to run; none unless set. */
        public Builder forbiddenFlags(ForbiddenFlags forbiddenFlags) {
            this.forbiddenFlags = forbiddenFlags;
            return this;
        }

        /** Adds tasks. */
        public Builder tasks(Collection<TaskRegistration> tasks) {
            this.tasks.addAll(tasks);
            return this;
        }

        /**
         * Adds task constants of the application, whose payloads the handlers of their tasks have to take.
         *
         * @see DeclaredTask#in
         */
        public Builder declaredTasks(Collection<DeclaredTask> declaredTasks) {
            this.declaredTasks.addAll(declaredTasks);
            return this;
        }

        /** Adds a task whose handler is a function. */
        public <P> Builder task(Task<P> task, TaskHandler<P> handler) {
            tasks.add(TaskRegistration.of(task, handler));
            return this;
        }

        /** Adds a task whose handler is a function on a list of items, of which some may fail. */
        public <T> Builder batchTask(Task<List<T>> task, BatchTaskHandler<T> handler) {
            tasks.add(TaskRegistration.ofBatch(task, handler));
            return this;
        }

        /** Adds a listener, which is called on {@code worker-events} and never slows the worker down. */
        public Builder listener(WorkerEventListener listener) {
            listeners.add(listener);
            return this;
        }

        /**
         * Adds a listener that is called on the worker's own threads, as each event says, and misses no event. It must
         * return within microseconds and wait for nothing, or the worker becomes as slow as it.
         */
        public Builder directListener(WorkerEventListener listener) {
            directListeners.add(listener);
            return this;
        }

        /** Adds what stands around every run of a handler, inside the interceptors added before. */
        public Builder jobInterceptor(JobInterceptor interceptor) {
            jobInterceptors.add(interceptor);
            return this;
        }

        /**
         * Adds what sees the jobs of recurring items before they are added, after the interceptors added before. The
         * scheduler has its own, see {@link WorkerClient}.
         */
        public Builder scheduleInterceptor(ScheduleInterceptor interceptor) {
            scheduleInterceptors.add(interceptor);
            return this;
        }

        /** Adds a handler that is asked what becomes of the jobs that this worker takes from dead ones. */
        public Builder recoveryHandler(JobRecoveryHandler recoveryHandler) {
            recoveryHandlers.add(recoveryHandler);
            return this;
        }

        /** Adds recurring jobs. Their tasks may be served by other workers. */
        public Builder crontab(Crontab crontab) {
            cronItems.addAll(crontab.items());
            return this;
        }

        /** Adds a recurring job. */
        public Builder cronItem(CronItem item) {
            cronItems.add(item);
            return this;
        }

        /** Sets whose local time the patterns mean of recurring jobs without a zone of their own; UTC unless set. */
        public Builder crontabZone(ZoneId crontabZone) {
            this.crontabZone = crontabZone;
            return this;
        }

        /**
         * Returns the worker, not started.
         *
         * @throws dev.pgworker.task.HandlerDefinitionException if two tasks have the same identifier, if a task constant has
         *     another payload type than the handler of its task, or if a handler is transactional and there is no transaction
         *     manager
         * @throws dev.pgworker.crontab.CrontabException if two recurring jobs have the same identifier
         * @throws IllegalArgumentException if the payload of a recurring job is not written as a JSON object
         */
        public Worker build() {
            TaskRegistry registry = TaskRegistry.of(tasks);
            registry.requireTypesOf(declaredTasks);
            if (transactionManager == null) {
                registry.requireNoneTransactional();
            }
            PayloadCodec usedCodec = codec == null ? new PayloadCodec(new JsonMapper()) : codec;
            warnOfUnservedTasks(registry);
            JobScheduler usedScheduler =
                    jobScheduler == null ? WorkerClient.jobScheduler(dataSource, schema, usedCodec) : jobScheduler;
            return new Worker(new WorkerParts(
                    dataSource,
                    usedListenDataSource(),
                    privateDataSource,
                    schema,
                    settings,
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
                    List.copyOf(recoveryHandlers),
                    reconcileInterval,
                    stallAfter,
                    stuckAfter));
        }

        private DataSource usedListenDataSource() {
            if (listenDataSource != null) {
                return MessageArrival.toldBy(listenDataSource);
            }
            return privateDataSource == null
                    ? dataSource
                    : PrivateConnections.of(MessageArrival.toldBy(privateDataSource), dataSource);
        }

        private void warnOfUnservedTasks(TaskRegistry registry) {
            for (CronItem item : cronItems) {
                if (!registry.identifiers().contains(item.task())) {
                    log.warn(
                            "Cron item {} is of task {}, which this worker does not serve: its jobs wait for another",
                            item.identifier(),
                            item.task());
                }
            }
        }
    }
}
