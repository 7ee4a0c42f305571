package dev.pgworker.task;

/**
 * Handles the jobs of a task, as a function; the counterpart of {@link JobHandler} for methods.
 *
 * @param <P> the Java type of the payload
 * @since 0.1.0
 */
@FunctionalInterface
public interface TaskHandler<P> {

    /**
     * Runs one attempt of a job, on a handler thread and outside any transaction. Returning normally completes the job,
     * which deletes it; an exception fails the attempt.
     *
     * @param payload the decoded payload
     * @param context the running attempt
     * @throws Exception if the attempt failed; the job is then retried
     */
    void handle(P payload, JobContext context) throws Exception;
}
