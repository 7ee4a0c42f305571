package dev.pgworker.job;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * Adds jobs.
 *
 * <p>Every method runs on the caller's thread and joins the caller's Spring transaction on the worker's
 * {@code DataSource}, under JDBC and JPA alike: the job exists when that transaction commits and never when it rolls
 * back. Without a transaction the job is committed on return. Thread-safe.
 *
 * <p>A payload is any value that the application's Jackson {@code JsonMapper} can write; null stands for the empty
 * object. Every method throws {@link IllegalArgumentException}, before any SQL, for an argument out of its range or a
 * payload that cannot be written, and a {@link org.springframework.dao.DataAccessException} if the database refuses, or if
 * a trigger keeps a job out without a word; then it has added none.
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
     * @param identifier the task's name, 1 to 128 characters; some worker has to serve it, not necessarily this one
     * @param payload what the handler receives, or null
     * @return the job as the database stored it
     */
    default Job addJob(String identifier, @Nullable Object payload) {
        return addJob(identifier, payload, JobSpec.DEFAULT);
    }

    /**
     * Adds a job of the given task, or replaces the one that has the spec's job key.
     *
     * @param identifier the task's name, 1 to 128 characters; some worker has to serve it, not necessarily this one
     * @param payload what the handler receives, or null
     * @param spec when and how to run the job
     * @return the job as the database stored it; with a job key in use this is the changed or, under
     *     {@link JobKeyMode#UNSAFE_DEDUPE}, the untouched existing job
     */
    Job addJob(String identifier, @Nullable Object payload, JobSpec spec);

    /** As {@link #addJob(String, Object)}, with a payload whose type is checked by the compiler. */
    default <P> Job addJob(Task<P> task, P payload) {
        return addJob(task, payload, JobSpec.DEFAULT);
    }

    /** As {@link #addJob(String, Object, JobSpec)}, with a payload whose type is checked by the compiler. */
    default <P> Job addJob(Task<P> task, P payload, JobSpec spec) {
        return addJob(task.identifier(), payload, spec);
    }

    /**
     * Adds jobs, or replaces those whose job keys are in use, all in one transaction: up to 5,000 in one round trip,
     * more of them in chunks.
     *
     * @param requests the jobs; a job key may occur only once, with the mode {@code REPLACE} or {@code PRESERVE_RUN_AT},
     *     and one mode for all
     * @return the jobs as the database stored them, in the order of the requests
     * @throws IllegalArgumentException before any SQL, for a request that is not allowed; names it as
     *     {@code requests[index]}
     */
    List<Job> addJobs(List<JobRequest> requests);

    /** As {@link #addJobs(List)}, for jobs of one task that run as soon as possible. */
    default <P> List<Job> addJobs(Task<P> task, List<? extends P> payloads) {
        return addJobs(task, payloads, JobSpec.DEFAULT);
    }

    /** As {@link #addJobs(List)}, for jobs of one task that all have the same spec, which has no job key. */
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
     * Adds any number of jobs in one transaction without holding them in memory: those without a job key are written in
     * chunks while the stream is read. Jobs with a job key are held, and written together after the others; what
     * {@link #addJobs(List)} says about keys applies to the whole stream.
     *
     * @param requests the jobs; closed by the caller
     * @return how many jobs have been added or replaced
     * @throws IllegalArgumentException for a request that is not allowed, which it names as {@code requests[index]}; none of
     *     the jobs is added then, even if the caller's transaction is committed
     */
    long addJobs(Stream<JobRequest> requests);

    /**
     * Adds a batch job: one job whose payload is the list of items, to be handled by a handler that returns a
     * {@code BatchResult}. With a job key whose job waits, the items are appended to those of that job.
     *
     * @param items at least one
     * @throws IllegalArgumentException if there is no item
     */
    default Job addBatchJob(String identifier, List<?> items, JobSpec spec) {
        requireItems(items);
        return addJob(identifier, items, spec);
    }

    /** As {@link #addBatchJob(Task, List, JobSpec)}, for a job that runs as soon as possible. */
    default <T> Job addBatchJob(Task<List<T>> task, List<T> items) {
        return addBatchJob(task, items, JobSpec.DEFAULT);
    }

    /** As {@link #addBatchJob(String, List, JobSpec)}, with items whose type is checked by the compiler. */
    default <T> Job addBatchJob(Task<List<T>> task, List<T> items, JobSpec spec) {
        requireItems(items);
        return addJob(task, items, spec);
    }

    private static void requireItems(@Nullable List<?> items) {
        if (Arguments.requireNonNull("items", items).isEmpty()) {
            throw new IllegalArgumentException("items must not be empty");
        }
    }
}
