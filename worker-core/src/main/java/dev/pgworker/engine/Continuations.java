package dev.pgworker.engine;

import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;
import dev.pgworker.store.JobStore;

/**
 * Whether and for which tasks a completion may claim the next jobs of a queue, and where such jobs go. Set
 * by {@code worker-fetch} and the stop, read by whoever completes jobs.
 */
public final class Continuations {

    private volatile JobStore.Tasks tasks = JobStore.Tasks.NONE;
    private volatile @Nullable Consumer<List<Job>> taker;
    private volatile boolean stopped;
    private final Ownership ownership;

    /** Creates continuations that are allowed only while the worker may claim jobs. */
    public Continuations(Ownership ownership) {
        this.ownership = ownership;
    }

    /** Says who takes the jobs. Call once, before any job runs. */
    public void connect(Consumer<List<Job>> takesJobs) {
        taker = takesJobs;
    }

    /** Allows to claim jobs of these tasks. */
    public void allow(JobStore.Tasks served) {
        tasks = served;
    }

    /** Forbids to claim any more jobs. */
    public void stop() {
        stopped = true;
    }

    JobStore.Tasks tasks() {
        return tasks;
    }

    /** Returns what of these lanes is allowed. */
    JobStore.Lanes allowed(JobStore.Lanes lanes) {
        return stopped || !ownership.mayStart() ? lanes.withoutClaims() : lanes;
    }

    void accept(List<Job> jobs) {
        if (!jobs.isEmpty()) {
            Objects.requireNonNull(taker).accept(jobs);
        }
    }
}
