package dev.pgworker.autoconfigure.observation;

import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;
import java.util.stream.Stream;

import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobHandle;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;

/** Observes each call that adds jobs as the sending of a message. */
final class ObservedJobScheduler implements JobScheduler {

    private static final JobPublishConvention DEFAULT = new JobPublishConvention() {};

    private final JobScheduler scheduler;
    private final Supplier<ObservationRegistry> registry;
    private final Supplier<@Nullable JobPublishConvention> convention;

    /**
     * Creates a decorator.
     *
     * @param convention supplies that of the application, or null for the default
     */
    ObservedJobScheduler(
            JobScheduler scheduler,
            Supplier<ObservationRegistry> registry,
            Supplier<@Nullable JobPublishConvention> convention) {
        this.scheduler = scheduler;
        this.registry = registry;
        this.convention = convention;
    }

    @Override
    public Job addJob(String identifier, @Nullable Object payload, JobSpec spec) {
        return observe(identifier, () -> scheduler.addJob(identifier, payload, spec));
    }

    @Override
    public <P> Job addJob(Task<P> task, P payload, JobSpec spec) {
        if (task == null) {
            return scheduler.addJob(task, payload, spec); // which says what is wrong
        }
        return observe(task.identifier(), () -> scheduler.addJob(task, payload, spec));
    }

    @Override
    public List<Job> addJobs(List<JobRequest> requests) {
        return observe(null, () -> scheduler.addJobs(requests));
    }

    @Override
    public long addJobs(Stream<JobRequest> requests) {
        return observe(null, () -> scheduler.addJobs(requests));
    }

    @Override
    public <R> JobHandle<R> addJobForResult(JobRequest request, Class<R> resultType) {
        if (request == null) {
            return scheduler.addJobForResult(request, resultType); // which says what is wrong
        }
        return observe(request.identifier(), () -> scheduler.addJobForResult(request, resultType));
    }

    @Override
    public <R> JobHandle<R> resultOf(long jobId, Class<R> resultType) {
        return scheduler.resultOf(jobId, resultType);
    }

    private <T> T observe(@Nullable String task, Supplier<T> call) {
        return Objects.requireNonNull(Observation.createNotStarted(
                        convention.get(), DEFAULT, () -> new JobPublishContext(task), registry.get())
                .observe(call));
    }
}
