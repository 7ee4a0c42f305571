package dev.pgworker.internal.store;

import java.time.Instant;
import java.util.Objects;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;

/**
 * One run of a job, which every write about it names. A job that is tried again is claimed again, at another time.
 *
 * @param lockedAt when the job was claimed, by the database's clock
 */
public record Claim(long jobId, Instant lockedAt) {

    /** Returns the claim by which a job is held that a claim returned. */
    public static Claim of(Job job) {
        return new Claim(job.id(), Objects.requireNonNull(job.lockedAt()));
    }

    /** Few jobs are claimed twice within the time in which their claims are looked up. */
    @Override
    public int hashCode() {
        return Long.hashCode(jobId);
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof Claim claim && jobId == claim.jobId && lockedAt.equals(claim.lockedAt);
    }
}
