package dev.pgworker.autoconfigure.metrics;

import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.ToDoubleFunction;

import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.TimeGauge;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.context.SmartLifecycle;

import dev.pgworker.job.JobAdmin;
import dev.pgworker.job.JobBacklog;

/**
 * Looks at the backlog once in an interval, on the thread {@code worker-metrics}, for gauges that are read at any time.
 * They have no value before the first look and after one that failed.
 */
final class BacklogSampler implements SmartLifecycle {

    private static final Logger log = LoggerFactory.getLogger(BacklogSampler.class);

    private final JobAdmin admin;
    private final Duration interval;

    private @Nullable ScheduledExecutorService thread;
    private volatile @Nullable JobBacklog latest;
    private volatile boolean failing;

    /**
     * Creates a sampler that is not running.
     *
     * @param interval the time between two looks; zero for none, and no gauges
     */
    BacklogSampler(JobAdmin admin, Duration interval, MeterRegistry registry) {
        this.admin = admin;
        this.interval = interval;
        if (!interval.isZero()) {
            register(registry);
        }
    }

    private void register(MeterRegistry registry) {
        state(registry, "ready", JobBacklog::ready);
        state(registry, "scheduled", JobBacklog::scheduled);
        state(registry, "retrying", JobBacklog::retrying);
        state(registry, "failed", JobBacklog::failed);
        TimeGauge.builder("worker.backlog.age", this, TimeUnit.MILLISECONDS, s -> s.value(BacklogSampler::age))
                .description("Time since the job that has waited longest is due")
                .strongReference(true)
                .register(registry);
        Gauge.builder("worker.workers.active", this, s -> s.value(JobBacklog::workers))
                .description("Registered workers of all applications that have given a sign of life")
                .strongReference(true)
                .register(registry);
    }

    private void state(MeterRegistry registry, String state, ToDoubleFunction<JobBacklog> number) {
        Gauge.builder("worker.backlog", this, s -> s.value(number))
                .description("Jobs of all applications that do not run, by state")
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

    private void sample() {
        try {
            latest = admin.backlog();
            failing = false;
        } catch (RuntimeException e) {
            latest = null;
            if (!failing) {
                failing = true;
                log.warn("The backlog cannot be read; its metrics have no values until it can", e);
            }
        }
    }

    @Override
    public synchronized void start() {
        if (thread == null && !interval.isZero()) {
            thread = Executors.newSingleThreadScheduledExecutor(task -> {
                Thread created = new Thread(task, "worker-metrics");
                created.setDaemon(true);
                return created;
            });
            var unused = thread.scheduleWithFixedDelay(this::sample, 0, interval.toNanos(), TimeUnit.NANOSECONDS);
        }
    }

    @Override
    public synchronized void stop() {
        if (thread != null) {
            thread.shutdownNow();
            thread = null;
            latest = null;
        }
    }

    @Override
    public synchronized boolean isRunning() {
        return thread != null;
    }
}
