package dev.pgworker.internal.engine;

import java.sql.SQLException;
import java.time.Instant;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.store.Claimed;
import dev.pgworker.internal.store.FollowUp;
import dev.pgworker.internal.store.Lanes;
import dev.pgworker.internal.store.QueueStart;
import dev.pgworker.internal.store.Release;
import dev.pgworker.internal.store.ReleaseAction;
import dev.pgworker.internal.store.TaskIds;
import dev.pgworker.job.Job;

/**
 * Whether and for which tasks a completion may claim the next jobs of a queue, and where such jobs go. Set
 * by {@code worker-fetch} and the stop, read by whoever completes jobs.
 */
public final class FollowUpClaims {

    private final Ownership ownership;
    private final LocalQueue localQueue;
    private final CurrentFlags flags;
    private final QueueFloors floors;

    private volatile TaskIds tasks = TaskIds.NONE;
    private volatile @Nullable Consumer<Claimed> taker;
    private volatile boolean stopped;

    /** Creates continuations that are allowed only while the worker may claim jobs. */
    public FollowUpClaims(Ownership ownership, LocalQueue localQueue, CurrentFlags flags, QueueFloors floors) {
        this.ownership = ownership;
        this.localQueue = localQueue;
        this.flags = flags;
        this.floors = floors;
    }

    /** Says who takes the jobs. Call once, before any job runs. */
    public void connect(Consumer<Claimed> takesJobs) {
        taker = takesJobs;
    }

    /** Allows to claim jobs of these tasks. */
    public void allow(TaskIds served) {
        tasks = served;
    }

    /** Forbids to claim any more jobs. */
    public void stop() {
        stopped = true;
    }

    /** Returns what of these lanes, which are those of jobs that are done, is allowed. */
    FollowUp allowed(Lanes lanes, Collection<Job> done) {
        QueueStart start = start(done);
        if (!lanes.claims() || stopped || !ownership.mayStart()) {
            return new FollowUp(tasks, lanes.withoutClaims(), 1, List.of(), start);
        }
        try {
            // What has ended is not to wait for what may begin: the next claim takes the queue's next job otherwise.
            Collection<String> forbidden = flags.getSoon();
            return new FollowUp(tasks, lanes, localQueue.freeBytes(), forbidden, start);
        } catch (ForbiddenFlagsException e) {
            return new FollowUp(tasks, lanes.withoutClaims(), 1, List.of(), start);
        }
    }

    /** Returns where to look for the next jobs of the queues of these jobs; null for everywhere. */
    @Nullable QueueStart start(Collection<Job> jobs) {
        Set<String> queues = new HashSet<>();
        for (Job job : jobs) {
            if (job.queueName() != null) {
                queues.add(job.queueName());
            }
        }
        return queues.isEmpty() ? null : floors.of(queues);
    }

    /** Makes a write that gives these jobs up. */
    <T> T givingBack(Collection<Job> jobs, Collection<Release> releases, QueueFloors.Write<T> write)
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

    void accept(Claimed claimed) {
        floors.claimed(claimed);
        if (claimed.size() > 0) {
            Objects.requireNonNull(taker).accept(claimed);
        }
    }
}
