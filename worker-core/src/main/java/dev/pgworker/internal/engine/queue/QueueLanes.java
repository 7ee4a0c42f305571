package dev.pgworker.internal.engine.queue;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;

/**
 * The named queues of which a worker holds jobs, a lane each: one job of a lane is ready or runs, the others wait behind it. Guarded by
 * the {@link LocalQueue} that it belongs to.
 */
final class QueueLanes {

    private final Map<String, Lane> lanes = new HashMap<>();

    /** Jobs that wait behind another one of their queue. */
    private int behind;

    /** The jobs of one named queue. */
    static final class Lane {

        private final PriorityQueue<LocalJob> behind = new PriorityQueue<>(LocalJob::compareStart);

        /** The one that is ready or runs; compared by identity. */
        private @Nullable Job current;

        /** How many of its jobs are in flight. */
        int unsettled;

        /** How many of its jobs have been claimed since this worker locked it. */
        int tenure;

        /** How many of its jobs are being given back: no later one may start before that is written. */
        int expired;
    }

    /** Returns the lane of a job; null for a job without a queue, or of a queue of which none is here. */
    @Nullable Lane of(Job job) {
        return job.queueName() == null ? null : lanes.get(job.queueName());
    }

    /** Returns the lane of a job that has just been claimed; null for one without a queue. */
    @Nullable Lane enter(Job job) {
        if (job.queueName() == null) {
            return null;
        }
        Lane lane = lanes.computeIfAbsent(job.queueName(), name -> new Lane());
        lane.unsettled++;
        lane.tenure++;
        return lane;
    }

    /** Forgets a job whose outcome is written, and its lane with the last one. */
    void leave(LocalJob local) {
        Lane lane = of(local.job);
        if (lane != null) {
            lane.expired -= local.stage == LocalJob.Stage.EXPIRED ? 1 : 0;
            if (--lane.unsettled == 0) {
                lanes.remove(local.job.queueName());
            }
        }
    }

    /** Puts a job behind the others; returns the job that is ready because of it, if none was before. */
    @Nullable LocalJob wait(LocalJob local, Lane lane) {
        behind++;
        lane.behind.add(local);
        return lane.current == null ? next(lane) : null;
    }

    /** Returns the next job of a lane, which is ready from here on; null if there is none. */
    @Nullable LocalJob next(Lane lane) {
        LocalJob next = lane.behind.poll();
        lane.current = next == null ? null : next.job;
        if (next != null) {
            behind--;
        }
        return next;
    }

    /** Returns the job that is ready because this one has ended or does not start; null if there is none. */
    @SuppressWarnings("ReferenceEquality") // a job that is claimed again is another one
    @Nullable LocalJob after(Job job) {
        Lane lane = of(job);
        return lane != null && lane.current == job ? next(lane) : null;
    }

    /** Takes a job out that waits behind others. */
    void remove(LocalJob local) {
        Lane lane = of(local.job);
        if (lane != null && lane.behind.remove(local)) {
            behind--;
        }
    }

    /** Takes all that wait behind others out of a lane of which nothing is to run. */
    List<LocalJob> clear(Lane lane) {
        lane.current = null;
        return clearBehind(lane);
    }

    /** Takes all out that wait behind the one that is ready or runs. */
    List<LocalJob> clearBehind(Lane lane) {
        List<LocalJob> waiting = new ArrayList<>(lane.behind);
        behind -= waiting.size();
        lane.behind.clear();
        return waiting;
    }

    /** Takes all out that wait. */
    void clearBehind() {
        lanes.values().forEach(lane -> lane.behind.clear());
        behind = 0;
    }

    static Collection<LocalJob> behind(Lane lane) {
        return lane.behind;
    }

    Collection<Lane> all() {
        return lanes.values();
    }

    boolean contains(@Nullable String queueName) {
        return queueName != null && lanes.containsKey(queueName);
    }

    int behind() {
        return behind;
    }
}
