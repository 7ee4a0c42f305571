package dev.pgworker.autoconfigure.observation;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;
import java.util.stream.Stream;

import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import io.micrometer.observation.transport.SenderContext;
import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;

/** Observes each call that adds jobs as the sending of a message. */
final class ObservedJobScheduler implements JobScheduler {

    private final JobScheduler scheduler;
    private final Supplier<ObservationRegistry> registry;

    ObservedJobScheduler(JobScheduler scheduler, Supplier<ObservationRegistry> registry) {
        this.scheduler = scheduler;
        this.registry = registry;
    }

    @Override
    public Job addJob(String identifier, @Nullable Object payload, JobSpec spec) {
        return observe("add " + identifier, identifier, () -> scheduler.addJob(identifier, payload, spec));
    }

    @Override
    public <P> Job addJob(Task<P> task, P payload, JobSpec spec) {
        if (task == null) {
            return scheduler.addJob(task, payload, spec); // which says what is wrong
        }
        return observe("add " + task.identifier(), task.identifier(), () -> scheduler.addJob(task, payload, spec));
    }

    @Override
    public List<Job> addJobs(List<JobRequest> requests) {
        return observe("add jobs", null, () -> scheduler.addJobs(requests));
    }

    @Override
    public long addJobs(Stream<JobRequest> requests) {
        return observe("add jobs", null, () -> scheduler.addJobs(requests));
    }

    /** The trace travels in payloads, into which {@link TracePropagation} writes it, and not in the map of this context. */
    private <T> T observe(String name, @Nullable String task, Supplier<T> call) {
        SenderContext<Map<String, String>> context = new SenderContext<>((map, key, value) -> {
            if (map != null) {
                map.put(key, value);
            }
        });
        context.setCarrier(new HashMap<>());
        Observation observation = Observation.createNotStarted("worker.job.add", () -> context, registry.get())
                .contextualName(name);
        if (task != null) {
            observation.highCardinalityKeyValue("task", task);
        }
        return Objects.requireNonNull(observation.observe(call));
    }
}
