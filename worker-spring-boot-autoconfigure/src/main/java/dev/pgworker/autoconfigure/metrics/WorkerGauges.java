package dev.pgworker.autoconfigure.metrics;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.function.ToDoubleFunction;

import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.TimeGauge;
import org.jspecify.annotations.Nullable;

import dev.pgworker.Worker;
import dev.pgworker.WorkerStatus;

/** Shows what a worker is doing. Each look takes microseconds; a worker that does not run has no values. */
final class WorkerGauges {

    private WorkerGauges() {}

    static void register(String name, Worker worker, MeterRegistry registry) {
        Tags tags = Tags.of(WorkerMetrics.WORKER, name);
        gauge(worker, registry, tags, "pgworker.handlers.active", "Running handlers", WorkerStatus::running);
        gauge(
                worker,
                registry,
                tags,
                "pgworker.handlers.free",
                "Further handlers that could run",
                WorkerStatus::freeSlots);
        gauge(
                worker,
                registry,
                tags,
                "pgworker.local.queue",
                "Claimed jobs that wait for a handler",
                WorkerStatus::waiting);
        gauge(
                worker,
                registry,
                tags,
                "pgworker.listener.up",
                "1 if notifications arrive, else 0",
                status -> status.listening() || status.pollingOnly() ? 1 : 0);
        gauge(
                worker,
                registry,
                tags,
                "pgworker.stalled",
                "1 if due jobs do not start although a handler is free, else 0",
                status -> status.stall() == null ? 0 : 1);
        gauge(
                worker,
                registry,
                tags,
                "pgworker.held.up",
                "Parts of the worker that locks of others or missing rights keep from their work",
                status -> status.heldUp().size());
        gauge(
                worker,
                registry,
                tags,
                "pgworker.threads.failed",
                "Threads of the worker that have ended or hang",
                status -> status.deadThreads().size() + status.stuckThreads().size());
        gauge(
                worker,
                registry,
                tags,
                "pgworker.pauses",
                "Tasks and queues that are paused; everything counts as one",
                status -> status.pauses().size());
        TimeGauge.builder("pgworker.paused.since", worker, TimeUnit.SECONDS, w -> value(w, WorkerGauges::pausedSince))
                .description("Time since the epoch at which the oldest pause began; no value if there is none")
                .tags(tags)
                .strongReference(true)
                .register(registry);
        TimeGauge.builder(
                        "pgworker.snapshot.age",
                        worker,
                        TimeUnit.MILLISECONDS,
                        w -> value(
                                w,
                                status -> status.heldSnapshot() == null
                                        ? 0
                                        : millis(status.heldSnapshot().age())))
                .description(
                        "Time for which a snapshot that lets the jobs table grow has been held; 0 if there is none")
                .tags(tags)
                .strongReference(true)
                .register(registry);
        TimeGauge.builder(
                        "pgworker.heartbeat.age",
                        worker,
                        TimeUnit.MILLISECONDS,
                        w -> value(w, status -> millis(status.sinceHeartbeat())))
                .description("Time since the worker's last heartbeat")
                .tags(tags)
                .strongReference(true)
                .register(registry);
    }

    private static void gauge(
            Worker worker,
            MeterRegistry registry,
            Tags tags,
            String name,
            String description,
            ToDoubleFunction<WorkerStatus> value) {
        Gauge.builder(name, worker, w -> value(w, value))
                .description(description)
                .tags(tags)
                .strongReference(true)
                .register(registry);
    }

    private static double value(@Nullable Worker worker, ToDoubleFunction<WorkerStatus> value) {
        WorkerStatus status = worker == null ? null : worker.status();
        return status == null ? Double.NaN : value.applyAsDouble(status);
    }

    private static double pausedSince(WorkerStatus status) {
        return status.pauses().stream()
                .mapToDouble(pause -> pause.since().toEpochMilli() / 1_000.0)
                .min()
                .orElse(Double.NaN);
    }

    private static double millis(@Nullable Duration time) {
        return time == null ? Double.NaN : time.toMillis();
    }
}
