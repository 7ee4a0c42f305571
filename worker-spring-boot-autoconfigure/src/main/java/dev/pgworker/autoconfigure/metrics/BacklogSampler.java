package dev.pgworker.autoconfigure.metrics;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.ToDoubleFunction;

import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.TimeGauge;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.context.SmartLifecycle;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;
import org.springframework.scheduling.config.ScheduledTask;
import org.springframework.scheduling.config.ScheduledTaskHolder;
import org.springframework.scheduling.config.ScheduledTaskRegistrar;

import dev.pgworker.autoconfigure.WorkerInstance;
import dev.pgworker.autoconfigure.WorkerInstances;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.job.JobBacklog;
import dev.pgworker.job.JobQueries;

/**
 * Samples the backlog of each worker's schema once in an interval, on the thread {@code worker-metrics-1}, for gauges that are
 * read at any time. They have no value before the first sample and after one that failed.
 */
final class BacklogSampler implements SmartLifecycle, ScheduledTaskHolder {

    private static final Logger log = WorkerLog.of(BacklogSampler.class);

    private final List<Sampled> sampled;
    private final Duration interval;

    private @Nullable ThreadPoolTaskScheduler scheduler;
    private Set<ScheduledTask> tasks = Set.of();

    /**
     * Creates a sampler that is not running.
     *
     * @param interval the time between two samples; zero for none, and no gauges
     */
    BacklogSampler(List<WorkerInstance> workers, Duration interval, MeterRegistry registry) {
        this.interval = interval;
        sampled = interval.isZero()
                ? List.of()
                : workers.stream().map(worker -> new Sampled(worker, registry)).toList();
    }

    /** The backlog of one worker's schema, and its gauges. */
    private static final class Sampled implements Runnable {

        private final String worker;
        private final JobQueries queries;
        private final LimitGauges limits;
        private volatile @Nullable JobBacklog latest;
        private volatile boolean stopped;
        private boolean failing;

        Sampled(WorkerInstance its, MeterRegistry registry) {
            worker = its.name();
            queries = its.jobQueries();
            state(registry, "ready", JobBacklog::ready);
            state(registry, "scheduled", JobBacklog::scheduled);
            state(registry, "retrying", JobBacklog::retrying);
            state(registry, "limited", JobBacklog::limited);
            state(registry, "failed", JobBacklog::failed);
            limits = new LimitGauges(worker, its.jobLimits(), registry);
            TimeGauge.builder("pgworker.backlog.age", this, TimeUnit.MILLISECONDS, s -> s.value(Sampled::age))
                    .description("Time for which the longest-waiting job has been due")
                    .tag(WorkerMetrics.WORKER, worker)
                    .strongReference(true)
                    .register(registry);
            Gauge.builder("pgworker.workers.active", this, s -> s.value(JobBacklog::workers))
                    .description("Registered workers of all applications that have sent a heartbeat recently")
                    .tag(WorkerMetrics.WORKER, worker)
                    .strongReference(true)
                    .register(registry);
        }

        private void state(MeterRegistry registry, String state, ToDoubleFunction<JobBacklog> number) {
            Gauge.builder("pgworker.backlog", this, s -> s.value(number))
                    .description("Jobs of all applications that are not running, by state")
                    .tag(WorkerMetrics.WORKER, worker)
                    .tag("state", state)
                    .strongReference(true)
                    .register(registry);
        }

        private double value(ToDoubleFunction<JobBacklog> number) {
            JobBacklog backlog = latest;
            return backlog == null ? Double.NaN : number.applyAsDouble(backlog);
        }

        private static double age(JobBacklog backlog) {
            Duration oldestDue = backlog.oldestDue();
            return oldestDue == null ? 0 : oldestDue.toMillis();
        }

        /** Only the sampler's thread calls this. */
        @Override
        public void run() {
            try {
                latest = queries.backlog();
                limits.sample();
                failing = false;
            } catch (RuntimeException e) {
                latest = null;
                limits.clear();
                if (!failing && !stopped) {
                    failing = true;
                    log.warn(
                            "The backlog of the worker {} cannot be read; its metrics have no values until it can",
                            worker,
                            e);
                }
            }
        }

        /** What {@code /actuator/scheduledtasks} shows. */
        @Override
        public String toString() {
            return (worker.equals(WorkerInstances.DEFAULT) ? "worker" : "worker " + worker) + ": sample the backlog";
        }
    }

    @Override
    public synchronized void start() {
        if (scheduler != null || sampled.isEmpty()) {
            return;
        }
        sampled.forEach(each -> each.stopped = false);
        // No bean, which would be taken for the scheduler of the application.
        scheduler = new ThreadPoolTaskScheduler();
        scheduler.setThreadNamePrefix("worker-metrics-");
        scheduler.setDaemon(true);
        scheduler.initialize();
        ScheduledTaskRegistrar registrar = new ScheduledTaskRegistrar();
        registrar.setTaskScheduler(scheduler);
        sampled.forEach(each -> registrar.addFixedDelayTask(each, interval));
        registrar.afterPropertiesSet();
        tasks = registrar.getScheduledTasks();
    }

    @Override
    public synchronized void stop() {
        if (scheduler != null) {
            sampled.forEach(each -> each.stopped = true);
            scheduler.shutdown();
            scheduler = null;
            tasks = Set.of();
            sampled.forEach(each -> each.latest = null);
        }
    }

    @Override
    public synchronized boolean isRunning() {
        return scheduler != null;
    }

    @Override
    public synchronized Set<ScheduledTask> getScheduledTasks() {
        return tasks;
    }
}
