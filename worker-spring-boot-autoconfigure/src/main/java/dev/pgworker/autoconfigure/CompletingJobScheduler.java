package dev.pgworker.autoconfigure;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobHandle;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;

/** Adds jobs with what the properties say of their tasks, where their specs say nothing. What is missing it leaves to the other to refuse. */
final class CompletingJobScheduler implements JobScheduler {

    private final JobScheduler scheduler;
    private final DefaultsOfTasks defaults;

    CompletingJobScheduler(JobScheduler scheduler, DefaultsOfTasks defaults) {
        this.scheduler = scheduler;
        this.defaults = defaults;
    }

    @Override
    public Job addJob(String identifier, @Nullable Object payload, JobSpec spec) {
        return scheduler.addJob(identifier, payload, complete(identifier, spec));
    }

    @Override
    public <P> Job addJob(Task<P> task, P payload, JobSpec spec) {
        return scheduler.addJob(task, payload, task == null ? spec : complete(task.identifier(), spec));
    }

    @Override
    public List<Job> addJobs(List<JobRequest> requests) {
        if (requests == null) {
            return scheduler.addJobs(requests);
        }
        List<JobRequest> completed = new ArrayList<>(requests.size());
        requests.forEach(request -> completed.add(complete(request)));
        return scheduler.addJobs(completed);
    }

    @Override
    public long addJobs(Stream<JobRequest> requests) {
        return scheduler.addJobs(requests == null ? requests : requests.map(this::complete));
    }

    @Override
    public <R> JobHandle<R> addJobForResult(JobRequest request, Class<R> resultType) {
        return scheduler.addJobForResult(complete(request), resultType);
    }

    @Override
    public <R> JobHandle<R> resultOf(long jobId, Class<R> resultType) {
        return scheduler.resultOf(jobId, resultType);
    }

    private JobRequest complete(JobRequest request) {
        return request == null
                ? request
                : new JobRequest(
                        request.identifier(),
                        request.payload(),
                        request.payloadType(),
                        complete(request.identifier(), request.spec()));
    }

    private JobSpec complete(String identifier, JobSpec spec) {
        return identifier == null || spec == null ? spec : defaults.complete(identifier, spec);
    }
}
