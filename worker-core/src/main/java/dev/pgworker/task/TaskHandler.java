package dev.pgworker.task;

/**
 * The work of a task, written as a function: what {@link JobHandler} is for methods.
 *
 * @param <P> the Java type of the payload
 * @since 0.1.0
 */
@FunctionalInterface
public interface TaskHandler<P> {

    /**
     * Runs one attempt of a job, on a handler thread and outside any transaction. Returning completes the job, which
     * deletes it; an exception fails the attempt.
     *
     * @param payload the decoded payload
     * @param context the running attempt
     * @throws Exception if the attempt failed and the job is to be retried
     */
    void handle(P payload, JobContext context) throws Exception;
}
