package dev.pgworker.internal.store;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;

/**
 * A job that a claim has locked.
 *
 * @param job its payload is empty, which no JSON is, if it is to be read before the job runs
 * @param queueId 0 for a job without a queue
 * @param address of its row at the time of the claim; null if it is not known
 * @param limited whether its claim is a permit of a limit
 */
public record ClaimedJob(Job job, int queueId, @Nullable String address, boolean limited) {

    /** Returns whether the payload is large, and still to be read. */
    public static boolean lacksPayload(Job job) {
        return job.payload().isEmpty();
    }
}
