package dev.pgworker.flow;

import org.jspecify.annotations.Nullable;

/**
 * How a job has ended that another one has waited for.
 *
 * @since 0.1.0
 */
public interface PredecessorResult {

    /** Returns the id of the job. */
    long jobId();

    /** Returns the name of its task. */
    String taskIdentifier();

    /** Returns how it has ended; {@code WAITING} if it has not. */
    FlowState state();

    /** Returns whether it has succeeded. */
    default boolean succeeded() {
        return state() == FlowState.SUCCEEDED;
    }

    /** Returns the last error of a job that has not succeeded, or why its result was not kept; null if there is none. */
    @Nullable String error();

    /** Returns what its handler has returned, as JSON; null if it has returned nothing, or has not succeeded. */
    @Nullable String json();

    /**
     * Returns what its handler has returned.
     *
     * @throws IllegalStateException if there is no result; the message has the reason
     * @throws RuntimeException a {@link dev.pgworker.task.PayloadException} if the result does not fit the type
     */
    <R> R as(Class<R> type);
}
