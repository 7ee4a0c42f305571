package dev.pgworker.internal.store;

import org.jspecify.annotations.Nullable;

/**
 * A job that the server did not let anybody claim.
 *
 * @param queueId null for a job without a queue, as its name
 * @param reason what the server said
 * @param state with which SQLSTATE
 */
public record Refused(
        long jobId,
        String task,
        @Nullable String queueName,
        @Nullable Integer queueId,
        String reason,
        String state) {

    /** Returns whether the server says that it lacks something, a disk with room for instance, which may be so. */
    public boolean isLack() {
        return state.startsWith("53") || state.startsWith("58") || state.startsWith("08");
    }
}
