package dev.pgworker.job;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * Adds jobs.
 *
 * <p>Every method runs on the caller's thread and joins the caller's Spring transaction on the worker's {@code
 * DataSource}, under JDBC and JPA alike: the job is added when that transaction commits, and never if it rolls back.
 * Without a transaction, the job is committed on return. Thread-safe.
 *
 * <p>A payload is any value that the application's Jackson {@code JsonMapper} can serialize; null stands for the empty
 * object. Every method throws an {@link IllegalArgumentException}, before any SQL is executed, for an argument that is
 * out of range or a payload that cannot be serialized, and a {@link org.springframework.dao.DataAccessException} if the
 * database rejects a job or a trigger silently suppresses it; no job is added in that case.
 *
 * @since 0.1.0
 */
public interface JobScheduler {

    /** Adds a job of the given task that runs as soon as possible, with an empty object as payload. */
    default Job addJob(String identifier) {
        return addJob(identifier, null, JobSpec.DEFAULT);
    }

    /**
     * Adds a job of the given task that runs as soon as possible.
     *
     * @param identifier the task's name, 1 to 128 characters; it may be served by another worker or application
     * @param payload the payload that the handler receives; null for the empty object
     * @return the job as the database stored it
     */
    default Job addJob(String identifier, @Nullable Object payload) {
        return addJob(identifier, payload, JobSpec.DEFAULT);
    }

    /**
     * Adds a job of the given task, or replaces the one that has the spec's job key.
     *
     * @param identifier the task's name, 1 to 128 characters; it may be served by another worker or application
     * @param payload the payload that the handler receives; null for the empty object
     * @param spec when and how to run the job
     * @return the job as the database stored it; if the job key is in use, this is the changed existing job or, with
     *     {@link JobKeyMode#UNSAFE_DEDUPE}, the unchanged one
     */
    Job addJob(String identifier, @Nullable Object payload, JobSpec spec);

    /** Same as {@link #addJob(String, Object)}, with a payload whose type is checked at compile time. */
    default <P> Job addJob(Task<P> task, P payload) {
        return addJob(task, payload, JobSpec.DEFAULT);
    }

    /** Same as {@link #addJob(String, Object, JobSpec)}, with a payload whose type is checked at compile time. */
    default <P> Job addJob(Task<P> task, P payload, JobSpec spec) {
        return addJob(task.identifier(), payload, spec);
    }

    /**
     * Adds jobs, or replaces those whose job keys are in use, all in one transaction. It sends up to 5,000 jobs in one round
     * trip, and more in chunks.
     *
     * @param requests the jobs; each job key may occur only once, and all requests with a job key must have the same
     *     mode, {@code REPLACE} or {@code PRESERVE_RUN_AT}
     * @return the jobs as the database stored them, in the order of the requests
     * @throws IllegalArgumentException before any SQL is executed, if a request is invalid; the message names it as
     *     {@code requests[index]}
     */
    List<Job> addJobs(List<JobRequest> requests);

    /** Same as {@link #addJobs(List)}, for jobs of one task that run as soon as possible. */
    default <P> List<Job> addJobs(Task<P> task, List<? extends P> payloads) {
        return addJobs(task, payloads, JobSpec.DEFAULT);
    }

    /**
     * Same as {@link #addJobs(List)}, for jobs of one task that all have the same spec, which must not have a job key.
     */
    default <P> List<Job> addJobs(Task<P> task, List<? extends P> payloads, JobSpec spec) {
        Arguments.requireNonNull("task", task);
        List<JobRequest> requests =
                new ArrayList<>(Arguments.requireNonNull("payloads", payloads).size());
        for (P payload : payloads) {
            requests.add(JobRequest.of(task, payload, spec));
        }
        return addJobs(requests);
    }

    /**
     * Adds any number of jobs in one transaction without holding them in memory. Those without a job key are written in
     * chunks while the stream is read. Jobs with a job key are kept in memory and written together after the others;
     * the rules of {@link #addJobs(List)} for job keys apply to the whole stream.
     *
     * @param requests the jobs; the caller closes the stream
     * @return the number of jobs that were added or replaced
     * @throws IllegalArgumentException if a request is invalid; the message names it as {@code requests[index]}. In
     *     that case no job is added, even if the caller's transaction is committed
     */
    long addJobs(Stream<JobRequest> requests);

    /**
     * Adds a batch job: one job whose payload is the list of items, for a handler that returns a {@code BatchResult}.
     * If a waiting job has the same job key, the items are appended to those of that job.
     *
     * @param items the items, at least one
     * @throws IllegalArgumentException if there is no item
     */
    default Job addBatchJob(String identifier, List<?> items, JobSpec spec) {
        requireItems(items);
        return addJob(identifier, items, spec);
    }

    /** Same as {@link #addBatchJob(Task, List, JobSpec)}, for a job that runs as soon as possible. */
    default <T> Job addBatchJob(Task<List<T>> task, List<T> items) {
        return addBatchJob(task, items, JobSpec.DEFAULT);
    }

    /** Same as {@link #addBatchJob(String, List, JobSpec)}, with items whose type is checked at compile time. */
    default <T> Job addBatchJob(Task<List<T>> task, List<T> items, JobSpec spec) {
        requireItems(items);
        return addJob(task, items, spec);
    }

    /**
     * Adds a job, or replaces the one that has the spec's job key, and has its result kept. It is kept until {@code
     * pgworker.results.keep-for} after the job's end. The job gets the flag {@code pgworker:result}. If it is added
     * again under its key without asking for a result, its end is still reported, but the result may be missing.
     *
     * @param resultType the type of what the handler returns, read by the application's {@code JsonMapper}: an array for a list, {@code Void} to wait
     *     for the end alone
     * @return what to wait with, in this process; {@link #resultOf} gives another one by the id, in any
     */
    <R> JobHandle<R> addJobForResult(JobRequest request, Class<R> resultType);

    /** Same as {@link #addJobForResult(JobRequest, Class)}, for a typed task. */
    default <P, R> JobHandle<R> addJobForResult(Task<P> task, P payload, JobSpec spec, Class<R> resultType) {
        return addJobForResult(JobRequest.of(task, payload, spec), resultType);
    }

    /** Same as {@link #addJobForResult(Task, Object, JobSpec, Class)}, for a job that runs as soon as possible. */
    default <P, R> JobHandle<R> addJobForResult(Task<P> task, P payload, Class<R> resultType) {
        return addJobForResult(task, payload, JobSpec.DEFAULT, resultType);
    }

    /** Same as {@link #addJobForResult(Task, Object, Class)}, of a task that is named by its identifier. */
    default <R> JobHandle<R> addJobForResult(String identifier, @Nullable Object payload, Class<R> resultType) {
        return addJobForResult(JobRequest.of(identifier, payload), resultType);
    }

    /**
     * Returns the handle of a job that was added for its result. Asks nothing of the database: who waits
     * learns whether there is such a job.
     *
     * @param jobId the id of the job, as {@link JobHandle#jobId} has returned it in whatever process
     */
    <R> JobHandle<R> resultOf(long jobId, Class<R> resultType);

    private static void requireItems(@Nullable List<?> items) {
        if (Arguments.requireNonNull("items", items).isEmpty()) {
            throw new IllegalArgumentException("items must not be empty");
        }
    }
}
