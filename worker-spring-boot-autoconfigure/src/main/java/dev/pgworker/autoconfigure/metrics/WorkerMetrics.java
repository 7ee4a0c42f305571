package dev.pgworker.autoconfigure.metrics;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import io.micrometer.core.instrument.MeterRegistry;

/** The meters of jobs of all workers of an application, made when they are asked for. */
final class WorkerMetrics {

    /** The tag with the name of the worker. */
    static final String WORKER = "worker";

    private final MeterRegistry registry;
    private final Map<String, JobMetrics> byWorker = new ConcurrentHashMap<>();

    WorkerMetrics(MeterRegistry registry) {
        this.registry = registry;
    }

    /** Returns the meters of a worker. */
    JobMetrics of(String worker) {
        return byWorker.computeIfAbsent(worker, name -> new JobMetrics(registry, name));
    }
}
