package dev.pgworker.flow;

import java.time.Instant;
import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * A job of a flow as {@link JobFlows#find} shows it.
 *
 * @param jobId its id; the job may be gone
 * @param taskIdentifier the name of its task; null if that is not known any more
 * @param state how far it has come
 * @param endedAt when it ended; null if it has not
 * @param onFailure what happens to it if one of the jobs that it waits for does not succeed; null if it has never waited for any
 * @param predecessors the ids of those jobs that it waits for, or has waited for, that are shown as well, in ascending order
 * @since 0.1.0
 */
public record FlowMember(
        long jobId,
        @Nullable String taskIdentifier,
        FlowState state,
        @Nullable Instant endedAt,
        @Nullable OnFailure onFailure,
        List<Long> predecessors) {

    /** Copies the list. */
    public FlowMember {
        predecessors = Arguments.requireList("predecessors", predecessors);
    }
}
