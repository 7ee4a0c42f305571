package dev.pgworker.history;

import java.time.Duration;
import java.time.Instant;
import java.util.Set;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * One run that has ended, or the end of a job that did not run.
 *
 * @param jobId the id of the job, which may no longer exist
 * @param taskIdentifier the name of the task
 * @param queueName the named queue, or null for none
 * @param key the key that the job had, or null
 * @param outcome how it ended
 * @param endedAt when it ended, by the database's clock
 * @param startedAt when a worker claimed the job; null if none did
 * @param took how long the handler ran, or, for workers that do not record it, how long the job was claimed; null if it
 *     did not run, or if its worker died
 * @param attempt the number of the attempt; 0 if there was none
 * @param maxAttempts the number of attempts after which the job fails permanently
 * @param priority the priority of the job
 * @param flags the flags of the job; empty for none
 * @param createdAt when the job was added
 * @param runAt the earliest time at which this run could begin
 * @param workerId the id of the worker that ran the job; null if none did
 * @param error the error of the attempt, or null
 * @param result what the handler returned, as JSON text, or null
 * @param traceId the trace of the run, or null if none is known
 * @param payload the payload as JSON text; null if payloads are not kept, or if it has more than 64 KB
 * @since 0.1.0
 */
public record HistoryEntry(
        long jobId,
        String taskIdentifier,
        @Nullable String queueName,
        @Nullable String key,
        HistoryOutcome outcome,
        Instant endedAt,
        @Nullable Instant startedAt,
        @Nullable Duration took,
        int attempt,
        int maxAttempts,
        int priority,
        Set<String> flags,
        Instant createdAt,
        Instant runAt,
        @Nullable String workerId,
        @Nullable String error,
        @Nullable String result,
        @Nullable String traceId,
        @Nullable String payload) {

    /** Makes a defensive copy of the flags. */
    public HistoryEntry {
        flags = Set.copyOf(Arguments.requireElements("flags", flags));
    }
}
