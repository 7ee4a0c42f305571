package dev.pgworker.autoconfigure.metrics;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;

import dev.pgworker.event.WorkerEvent;

/**
 * Measures jobs: is told directly by the worker, so that nothing is lost, and finds the meters of a task with one look into
 * a map. A worker claims only jobs of tasks it serves, which keeps the number of meters bounded.
 */
final class JobMetrics {

    private static final String OTHER = "other";

    private final MeterRegistry registry;
    private final String worker;
    private final Map<String, TaskMeters> tasks = new ConcurrentHashMap<>();
    private final Map<String, Counter> enqueued = new ConcurrentHashMap<>();

    /** The tasks whose added jobs are counted by name. */
    private volatile Set<String> named = Set.of();

    /**
     * Creates metrics.
     *
     * @param worker the name of the worker, by which all meters are tagged
     */
    JobMetrics(MeterRegistry registry, String worker) {
        this.registry = registry;
        this.worker = worker;
        enqueuedOf(OTHER);
    }

    /** The meters of one task. */
    private record TaskMeters(
            Timer waiting,
            Timer success,
            ConcurrentMap<String, Timer> failures,
            Timer other,
            Counter retried,
            Counter failed,
            Counter lost,
            Counter superseded,
            Counter cancelled,
            Counter recovered) {}

    private TaskMeters meters(String task) {
        TaskMeters meters = tasks.get(task);
        return meters != null ? meters : tasks.computeIfAbsent(task, this::register);
    }

    private TaskMeters register(String task) {
        return new TaskMeters(
                Timer.builder("pgworker.job.wait")
                        .description("Time from when a job becomes due until its handler is called")
                        .tag(WorkerMetrics.WORKER, worker)
                        .tag("task", task)
                        .register(registry),
                execution(task, "success", "none"),
                new ConcurrentHashMap<>(),
                execution(task, OTHER, "none"),
                counter("pgworker.jobs.retried", "Attempts that failed and are followed by another one", task),
                counter("pgworker.jobs.failed", "Jobs that failed permanently", task),
                counter("pgworker.jobs.lost", "Outcomes not written because the worker no longer held the job", task),
                counter(
                        "pgworker.jobs.superseded",
                        "Attempts that did not succeed after the job had been superseded or removed by its key",
                        task),
                counter("pgworker.jobs.cancelled", "Jobs that ended because they were cancelled while they ran", task),
                counter("pgworker.jobs.recovered", "Jobs recovered from dead workers by this worker", task));
    }

    private Timer execution(String task, String outcome, String error) {
        return Timer.builder("pgworker.job.execution")
                .description("Duration of attempts")
                .tag(WorkerMetrics.WORKER, worker)
                .tag("task", task)
                .tag("outcome", outcome)
                .tag("error", error)
                .register(registry);
    }

    /** As Spring names errors in its own meters. An anonymous class has no simple name. */
    private static String name(Class<?> error) {
        return error.getSimpleName().isEmpty() ? error.getName() : error.getSimpleName();
    }

    private Counter counter(String name, String description, String task) {
        return Counter.builder(name)
                .description(description)
                .tag(WorkerMetrics.WORKER, worker)
                .tag("task", task)
                .register(registry);
    }

    /**
     * Registers the meters of tasks, so that they exist before the first job.
     *
     * @param served the tasks that this application has handlers for
     * @param others further ones whose added jobs are counted by name
     */
    void serve(Set<String> served, List<String> others) {
        Set<String> all = new HashSet<>(served);
        all.addAll(others);
        served.forEach(this::meters);
        named = Set.copyOf(all);
        if (!served.isEmpty()) {
            reconciled();
        }
        all.forEach(this::enqueuedOf);
    }

    /** Counts added jobs. */
    void enqueued(String task, int count) {
        enqueuedOf(named.contains(task) ? task : OTHER).increment(count);
    }

    private Counter enqueuedOf(String task) {
        return enqueued.computeIfAbsent(
                task, t -> counter("pgworker.jobs.enqueued", "Jobs added by this application", t));
    }

    private Counter reconciled() {
        return Counter.builder("pgworker.jobs.reconciled")
                .description("Jobs that this worker held without running them, and has released")
                .tag(WorkerMetrics.WORKER, worker)
                .register(registry);
    }

    /** Takes in what happened. Not a listener by type: as a bean, it would be called a second time. */
    void observe(WorkerEvent event) {
        if (event instanceof WorkerEvent.JobRecovered recovered) {
            // A sweep finds jobs of all tasks, not only of those that are served here.
            String task = recovered.job().taskIdentifier();
            meters(named.contains(task) ? task : OTHER).recovered.increment();
            return;
        }
        if (event instanceof WorkerEvent.ClaimsReconciled claims) {
            reconciled().increment(claims.jobs());
            return;
        }
        if (!(event instanceof WorkerEvent.OfJob ofJob) || event instanceof WorkerEvent.SupersededJobEnded) {
            return;
        }
        TaskMeters meters = meters(ofJob.job().taskIdentifier());
        if (event instanceof WorkerEvent.JobStarted started) {
            meters.waiting.record(started.waited());
        } else if (event instanceof WorkerEvent.JobSucceeded succeeded) {
            meters.success.record(succeeded.took());
        } else if (event instanceof WorkerEvent.JobErrored errored) {
            meters.failures
                    .computeIfAbsent(
                            name(errored.error().getClass()),
                            error -> execution(errored.job().taskIdentifier(), "failure", error))
                    .record(errored.took());
        } else if (event instanceof WorkerEvent.JobEnded ended) {
            meters.other.record(ended.took());
        } else if (event instanceof WorkerEvent.JobFailed failed) {
            (failed.permanently() ? meters.failed : meters.retried).increment();
        } else if (event instanceof WorkerEvent.JobLost) {
            meters.lost.increment();
        } else if (event instanceof WorkerEvent.JobSuperseded) {
            meters.superseded.increment();
        } else if (event instanceof WorkerEvent.JobCancelled) {
            meters.cancelled.increment();
        }
    }
}
