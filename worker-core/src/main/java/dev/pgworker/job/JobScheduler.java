package dev.pgworker.job;

import org.jspecify.annotations.Nullable;

/**
 * Adds jobs.
 *
 * <p>Every method runs on the caller's thread and joins the caller's Spring transaction on the worker's
 * {@code DataSource}, under JDBC and JPA alike: the job exists when that transaction commits and never when it rolls
 * back. Without a transaction the job is committed on return. Safe for use by many threads.
 *
 * <p>A payload is any value that the application's Jackson {@code JsonMapper} can write; null stands for the empty
 * object. Every method throws {@link IllegalArgumentException}, before any SQL, for an argument out of its range or a
 * payload that cannot be written, and a {@link org.springframework.dao.DataAccessException} if the database refuses.
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
}
