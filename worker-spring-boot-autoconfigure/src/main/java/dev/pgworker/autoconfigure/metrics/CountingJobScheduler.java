package dev.pgworker.autoconfigure.metrics;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobHandle;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;

/** Counts the jobs that are added; those of a transaction that is rolled back later are counted all the same. */
final class CountingJobScheduler implements JobScheduler {

    private final JobScheduler scheduler;
    private final Supplier<JobMetrics> metrics;

    CountingJobScheduler(JobScheduler scheduler, Supplier<JobMetrics> metrics) {
        this.scheduler = scheduler;
        this.metrics = metrics;
    }

    @Override
    public Job addJob(String identifier, @Nullable Object payload, JobSpec spec) {
        Job job = scheduler.addJob(identifier, payload, spec);
        metrics.get().enqueued(identifier, 1);
        return job;
    }

    @Override
    public <P> Job addJob(Task<P> task, P payload, JobSpec spec) {
        Job job = scheduler.addJob(task, payload, spec);
        metrics.get().enqueued(task.identifier(), 1);
        return job;
    }

    @Override
    public List<Job> addJobs(List<JobRequest> requests) {
        List<Job> jobs = scheduler.addJobs(requests);
        Map<String, Integer> counts = new HashMap<>();
        jobs.forEach(job -> counts.merge(job.taskIdentifier(), 1, Integer::sum));
        counts.forEach(metrics.get()::enqueued);
        return jobs;
    }

    @Override
    public long addJobs(Stream<JobRequest> requests) {
        Map<String, Integer> counts = new HashMap<>();
        long added = scheduler.addJobs(requests.peek(request -> {
            if (request != null) {
                counts.merge(request.identifier(), 1, Integer::sum);
            }
        }));
        counts.forEach(metrics.get()::enqueued);
        return added;
    }

    @Override
    public <R> JobHandle<R> addJobForResult(JobRequest request, Class<R> resultType) {
        JobHandle<R> handle = scheduler.addJobForResult(request, resultType);
        metrics.get().enqueued(request.identifier(), 1);
        return handle;
    }

    @Override
    public <R> JobHandle<R> resultOf(long jobId, Class<R> resultType) {
        return scheduler.resultOf(jobId, resultType);
    }
}
