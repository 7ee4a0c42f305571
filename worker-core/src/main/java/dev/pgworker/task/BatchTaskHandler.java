package dev.pgworker.task;

import java.util.List;

/**
 * The work of a task whose payload is a list of items, of which some may fail.
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
     * @return how each item went
     * @throws Exception if the whole attempt failed and the job is to be retried with all its items
     */
    BatchResult handle(List<T> items, JobContext context) throws Exception;
}
