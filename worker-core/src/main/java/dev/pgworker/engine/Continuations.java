package dev.pgworker.engine;

import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;

import org.jspecify.annotations.Nullable;

import dev.pgworker.store.JobStore;

/**
 * Whether and for which tasks a completion may claim the next jobs of a queue, and where such jobs go. Set
 * by {@code worker-fetch} and the stop, read by whoever completes jobs.
 */
public final class Continuations {

    private final Ownership ownership;
    private final LocalQueue localQueue;
    private final CurrentFlags flags;

    private volatile JobStore.Tasks tasks = JobStore.Tasks.NONE;
    private volatile @Nullable Consumer<JobStore.Claimed> taker;
    private volatile boolean stopped;

    /** Creates continuations that are allowed only while the worker may claim jobs. */
    public Continuations(Ownership ownership, LocalQueue localQueue, CurrentFlags flags) {
        this.ownership = ownership;
        this.localQueue = localQueue;
        this.flags = flags;
    }

    /** Says who takes the jobs. Call once, before any job runs. */
    public void connect(Consumer<JobStore.Claimed> takesJobs) {
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

    /** Returns what of these lanes is allowed. */
    JobStore.Continuation allowed(JobStore.Lanes lanes) {
        if (!lanes.claims() || stopped || !ownership.mayStart()) {
            return new JobStore.Continuation(tasks, lanes.withoutClaims(), 1, List.of());
        }
        try {
            // What has ended is not to wait for what may begin: the next claim takes the queue's next job otherwise.
            Collection<String> forbidden = flags.getSoon();
            return new JobStore.Continuation(tasks, lanes, localQueue.freeBytes(), forbidden);
        } catch (ForbiddenFlagsException e) {
            return new JobStore.Continuation(tasks, lanes.withoutClaims(), 1, List.of());
        }
    }

    void accept(JobStore.Claimed claimed) {
        if (claimed.size() > 0) {
            Objects.requireNonNull(taker).accept(claimed);
        }
    }
}
