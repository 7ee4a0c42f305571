package dev.pgworker.test;

import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobHandle;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobResultException;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.task.PayloadCodec;

/**
 * A {@link JobScheduler} without a database, for unit tests of what adds jobs: it keeps them in memory. Identifiers, specs and
 * payloads are checked, and payloads written as JSON, as in the application. Job keys are kept but replace nothing, and
 * transactions are of no account. Safe for use by many threads.
 *
 * @since 0.1.0
 */
public final class TestJobScheduler implements JobScheduler {

    private final PayloadCodec codec;

    @GuardedBy("this") private final List<Job> jobs = new ArrayList<>();

    @GuardedBy("this") private final Map<Long, CompletableFuture<Optional<Object>>> ends = new HashMap<>();

    /** Creates a scheduler that writes payloads with a plain {@code JsonMapper}. */
    public TestJobScheduler() {
        this(new PayloadCodec(new JsonMapper()));
    }

    /** Creates a scheduler that writes payloads as the codec does. */
    public TestJobScheduler(PayloadCodec codec) {
        this.codec = codec;
    }

    /** Returns the jobs that have been added. */
    public synchronized EnqueuedJobs jobs() {
        return new EnqueuedJobs(jobs, codec, Instant.now(), new JobRuns(List.of()));
    }

    /** Forgets the jobs. */
    public synchronized void clear() {
        jobs.clear();
        ends.clear();
    }

    @Override
    public Job addJob(String identifier, @Nullable Object payload, JobSpec spec) {
        return add(JobRequest.of(identifier, payload, spec));
    }

    @Override
    public <P> Job addJob(Task<P> task, P payload, JobSpec spec) {
        return add(JobRequest.of(task, payload, spec));
    }

    @Override
    public List<Job> addJobs(List<JobRequest> requests) {
        // All are checked before one is added.
        List<Job> added = requests.stream().map(this::job).toList();
        keep(added);
        return added;
    }

    @Override
    public long addJobs(Stream<JobRequest> requests) {
        List<Job> added = requests.map(this::job).toList();
        keep(added);
        return added.size();
    }

    /** The handle's wait ends when the test says so: {@link #succeed} or {@link #fail}. */
    @Override
    public <R> JobHandle<R> addJobForResult(JobRequest request, Class<R> resultType) {
        return resultOf(add(request).id(), resultType);
    }

    @Override
    public <R> JobHandle<R> resultOf(long jobId, Class<R> resultType) {
        return new TestJobHandle<>(jobId, end(jobId));
    }

    /** Has a job end with this result for those who wait for it. */
    public void succeed(long jobId, @Nullable Object result) {
        end(jobId).complete(Optional.ofNullable(result));
    }

    /** Has a job fail for good with this error for those who wait for it. */
    public void fail(long jobId, String error) {
        end(jobId)
                .completeExceptionally(
                        new JobResultException(jobId, null, JobResultException.Reason.FAILED, error, null));
    }

    private synchronized CompletableFuture<Optional<Object>> end(long jobId) {
        return ends.computeIfAbsent(jobId, unused -> new CompletableFuture<>());
    }

    private Job add(JobRequest request) {
        Job job = job(request);
        keep(List.of(job));
        return job;
    }

    private Job job(JobRequest request) {
        return TestJobs.of(TestJobs.nextId(), request, codec);
    }

    private synchronized void keep(List<Job> added) {
        jobs.addAll(added);
    }
}
