package dev.pgworker.job;

import java.time.Instant;
import java.util.Set;

import org.jspecify.annotations.Nullable;

/**
 * A job as it was in the database when it was read: one row of {@code jobs} with its payload.
 *
 * @param id the row's id, unique in the schema and never reused; 0 if the job was skipped
 * @param taskIdentifier the name of the task that runs this job
 * @param payload the payload as JSON text
 * @param queueName the named queue whose jobs run one at a time, or null for none
 * @param priority jobs with a numerically smaller priority run first
 * @param runAt the earliest time at which the job runs
 * @param attempts number of times the job has been claimed, including a running attempt
 * @param maxAttempts the number of attempts after which the job fails permanently
 * @param lastError the error that the last failed attempt reported, or null
 * @param createdAt when the job was added
 * @param updatedAt when the job was last changed by adding, failing or rescheduling it
 * @param key the key under which the job can be replaced or removed, or null
 * @param lockedAt when a worker claimed the job, or null if no worker holds it
 * @param lockedBy the id of the worker that holds the job, or null
 * @param revision number of times the job has been replaced under its key
 * @param flags flags by which workers may refuse to run the job; empty for none
 * @param recoveries number of times the job was recovered from a dead worker since it was added or its attempts were
 *     last set; only read by {@link JobQueries} and for recovery handlers, 0 everywhere else
 * @param limited whether the job waits for a {@linkplain dev.pgworker.limit limit}, or will when it is due
 * @since 0.1.0
 */
public record Job(
        long id,
        String taskIdentifier,
        String payload,
        @Nullable String queueName,
        int priority,
        Instant runAt,
        int attempts,
        int maxAttempts,
        @Nullable String lastError,
        Instant createdAt,
        Instant updatedAt,
        @Nullable String key,
        @Nullable Instant lockedAt,
        @Nullable String lockedBy,
        int revision,
        Set<String> flags,
        int recoveries,
        boolean limited) {

    /** Creates a job that has never been recovered and is not limited. */
    public Job(
            long id,
            String taskIdentifier,
            String payload,
            @Nullable String queueName,
            int priority,
            Instant runAt,
            int attempts,
            int maxAttempts,
            @Nullable String lastError,
            Instant createdAt,
            Instant updatedAt,
            @Nullable String key,
            @Nullable Instant lockedAt,
            @Nullable String lockedBy,
            int revision,
            Set<String> flags) {
        this(
                id,
                taskIdentifier,
                payload,
                queueName,
                priority,
                runAt,
                attempts,
                maxAttempts,
                lastError,
                createdAt,
                updatedAt,
                key,
                lockedAt,
                lockedBy,
                revision,
                flags,
                0,
                false);
    }

    /** Returns a copy of this job with the given number of recoveries. */
    public Job withRecoveries(int times) {
        return new Job(
                id,
                taskIdentifier,
                payload,
                queueName,
                priority,
                runAt,
                attempts,
                maxAttempts,
                lastError,
                createdAt,
                updatedAt,
                key,
                lockedAt,
                lockedBy,
                revision,
                flags,
                times,
                limited);
    }

    /** Returns a copy of this job with the given maximum number of attempts. */
    public Job withMaxAttempts(int limit) {
        return new Job(
                id,
                taskIdentifier,
                payload,
                queueName,
                priority,
                runAt,
                attempts,
                limit,
                lastError,
                createdAt,
                updatedAt,
                key,
                lockedAt,
                lockedBy,
                revision,
                flags,
                recoveries,
                limited);
    }

    /** Returns true if a {@link ScheduleInterceptor} prevented this job from being added, so that it has no row. */
    public boolean isSkipped() {
        return id == 0;
    }

    /** Returns a copy of this job with the given payload. */
    public Job withPayload(String json) {
        return new Job(
                id,
                taskIdentifier,
                json,
                queueName,
                priority,
                runAt,
                attempts,
                maxAttempts,
                lastError,
                createdAt,
                updatedAt,
                key,
                lockedAt,
                lockedBy,
                revision,
                flags,
                recoveries,
                limited);
    }

    /** Returns a short description suitable for logs: id, task and attempt, but never the payload. */
    @Override
    public String toString() {
        return "job " + id + " (" + taskIdentifier + ", attempt " + attempts + "/" + maxAttempts + ")";
    }
}
