package dev.pgworker.internal.engine.claim;

import java.sql.SQLException;
import java.time.Instant;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.engine.floor.QueueFloors;
import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.engine.run.JobExecutor;
import dev.pgworker.internal.store.Claimed;
import dev.pgworker.internal.store.FollowUp;
import dev.pgworker.internal.store.LanePlan;
import dev.pgworker.internal.store.QueueStart;
import dev.pgworker.internal.store.Release;
import dev.pgworker.internal.store.ReleaseAction;
import dev.pgworker.job.Job;

/**
 * The claims that completions make: whether and for which tasks a completion may claim the next jobs of a queue, from where on, and where
 * such jobs go. Thread-safe.
 */
public final class FollowUpClaims {

    private final ClaimPermission permission;
    private final LocalQueue localQueue;
    private final QueueFloors floors;
    private final JobExecutor executor;

    private volatile boolean stopped;

    /**
     * Creates what allows them while the worker may claim jobs.
     *
     * @param executor takes the jobs
     */
    public FollowUpClaims(ClaimPermission permission, LocalQueue localQueue, QueueFloors floors, JobExecutor executor) {
        this.permission = permission;
        this.localQueue = localQueue;
        this.floors = floors;
        this.executor = executor;
    }

    /** Forbids to claim any more jobs. */
    public void stop() {
        stopped = true;
    }

    /** Returns what of these lanes, which are those of jobs that are done, is allowed. */
    public FollowUp allowed(LanePlan lanes, Collection<Job> done) {
        QueueStart start = start(done);
        if (!lanes.claims() || stopped || !permission.ownership().mayStart()) {
            return new FollowUp(permission.tasks().all(), lanes.withoutClaims(), 1, List.of(), start);
        }
        try {
            // What has ended is not to wait for what may begin: the next claim takes the queue's next job otherwise.
            Collection<String> forbidden = permission.flags().getSoon();
            return new FollowUp(permission.tasks().all(), lanes, localQueue.freeBytes(), forbidden, start);
        } catch (ForbiddenFlagsException e) {
            return new FollowUp(permission.tasks().all(), lanes.withoutClaims(), 1, List.of(), start);
        }
    }

    /** Returns where to look for the next jobs of the queues of these jobs; null for everywhere. */
    public @Nullable QueueStart start(Collection<Job> jobs) {
        return floors.ofQueuesOf(jobs);
    }

    /** Makes a write that gives these jobs up. */
    public <T> T givingBack(Collection<Job> jobs, Collection<Release> releases, QueueFloors.Write<T> write)
            throws SQLException {
        Map<Long, Instant> times = new HashMap<>();
        for (Release release : releases) {
            Instant at = release.when() == null ? null : release.when().at();
            if (release.action() == ReleaseAction.BACK || at != null) {
                times.put(release.claim().jobId(), at == null ? Instant.MAX : at);
            }
        }
        Map<Integer, Instant> places = new HashMap<>();
        for (Job job : jobs) {
            Instant at = times.get(job.id());
            if (job.queueName() != null && at != null) {
                Instant runAt = at.isBefore(job.runAt()) ? at : job.runAt();
                places.merge(job.priority(), runAt, (a, b) -> a.isBefore(b) ? a : b);
            }
        }
        return floors.givingBack(places, write);
    }

    /** As {@link QueueFloors#news}. */
    public long news() {
        return floors.news();
    }

    public void accept(Claimed claimed) {
        floors.claimed(claimed);
        if (claimed.size() > 0) {
            executor.submit(claimed);
        }
    }
}
