package dev.pgworker.engine;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.function.BooleanSupplier;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;
import dev.pgworker.store.JobStore.Floor;

/**
 * Where the next claim begins to look, in a database in which nobody removes the index entries of finished jobs often
 * enough: at the first job of the last claim. A job that is added with an earlier time, or tried again, is passed over so
 * long; therefore the floor is dropped after each claim that finds too little, and every second.
 *
 * <p>Owned by {@code worker-fetch}.
 */
public final class ClaimFloor {

    private static final long LONGEST_NANOS = Duration.ofSeconds(1).toNanos();

    private final BooleanSupplier needed;

    private @Nullable Floor floor;
    private long since;

    /** Creates a floor that is there while the supplier says that it is needed. */
    public ClaimFloor(BooleanSupplier needed) {
        this.needed = needed;
    }

    /** Returns where to begin; null to look at all jobs. */
    @Nullable Floor current() {
        if (floor != null && System.nanoTime() - since > LONGEST_NANOS) {
            floor = null;
        }
        return floor;
    }

    /**
     * Takes note of a claim that began where {@link #current} said.
     *
     * @param jobs what it returned, in order
     * @param wanted how many it asked for
     * @return false if it found too little because it did not look at all jobs
     */
    boolean claimed(List<Job> jobs, int wanted) {
        boolean lookedAtAll = floor == null;
        if (jobs.size() < wanted || !needed.getAsBoolean()) {
            floor = null;
            return lookedAtAll;
        }
        if (lookedAtAll) {
            since = System.nanoTime();
        }
        floor = firstOfLastPriority(jobs);
        return true;
    }

    private static @Nullable Floor firstOfLastPriority(List<Job> jobs) {
        int priority = jobs.get(jobs.size() - 1).priority();
        return jobs.stream()
                .filter(job -> job.queueName() == null && job.priority() == priority)
                .map(Job::runAt)
                .min(Instant::compareTo)
                .map(first -> new Floor(priority, first))
                .orElse(null);
    }
}
