package dev.pgworker.task;

import java.util.List;

/**
 * Handles jobs whose payload is a list of items, each of which may fail separately.
 *
 * @param <T> the Java type of an item
 * @since 0.1.0
 */
@FunctionalInterface
public interface BatchTaskHandler<T> {

    /**
     * Runs one attempt of a batch job, on a handler thread.
     *
     * @param items the items of the payload, at least one
     * @param context the running attempt
     * @return the outcome of each item
     * @throws Exception if the whole attempt failed; the job is then retried with all its items
     */
    BatchResult handle(List<T> items, JobContext context) throws Exception;
}
