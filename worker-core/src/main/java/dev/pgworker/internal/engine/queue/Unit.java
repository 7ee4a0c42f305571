package dev.pgworker.internal.engine.queue;

import java.time.Instant;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Objects;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.store.ClaimedJob;
import dev.pgworker.internal.store.HeldQueue;
import dev.pgworker.job.Job;

/**
 * A job without a queue, or the run of a queue: jobs that were claimed together, which one handler runs one after the other. The queue is
 * freed when all of them are settled.
 */
final class Unit implements Comparable<Unit> {

    /** 0 for a job without a queue. */
    final int queueId;

    private final @Nullable String queueName;

    /** When the queue was locked. */
    final @Nullable Instant lockedAt;

    /** The jobs that have not been handed out, in the order in which they start. Guarded by the {@link LocalQueue}. */
    final Deque<LocalJob> waiting = new ArrayDeque<>(1);

    /** How many of its jobs are not settled. Guarded by {@link InFlight}. */
    int unsettled;

    private final boolean limited;
    private final int priority;
    private final Instant runAt;
    private final long firstId;

    /** Begins a unit with this job as its first. */
    Unit(ClaimedJob first) {
        queueId = first.queueId();
        queueName = first.job().queueName();
        lockedAt = first.job().lockedAt();
        limited = first.limited();
        priority = first.job().priority();
        runAt = first.job().runAt();
        firstId = first.job().id();
    }

    /** Returns the queue, locked since that time; null if the lock has been renewed. */
    HeldQueue queue(@Nullable Instant since) {
        return new HeldQueue(queueId, Objects.requireNonNull(queueName), since);
    }

    /** The order of the first jobs in that of all jobs; those that hold permits of limits come before the others. */
    @Override
    public int compareTo(Unit other) {
        int order = Boolean.compare(other.limited, limited);
        if (order == 0) {
            order = Integer.compare(priority, other.priority);
        }
        if (order == 0) {
            order = runAt.compareTo(other.runAt);
        }
        return order == 0 ? Long.compare(firstId, other.firstId) : order;
    }

    @Override
    @SuppressWarnings("ReferenceEquality") // two units may begin with the same job, claimed twice
    public boolean equals(@Nullable Object other) {
        return this == other;
    }

    @Override
    public int hashCode() {
        return System.identityHashCode(this);
    }

    /** A claim that is not settled. */
    static final class LocalJob {

        final @Nullable String address;
        final boolean limited;

        /** The jobs that one handler runs one after the other, this one among them. */
        final Unit unit;

        /** The {@link System#nanoTime} at which the claim was taken in. */
        final long at;

        /** With its payload once that is read. Set by {@link InFlight}. */
        volatile Job job;

        /**
         * Whether it waits for a handler, and was not taken to run it or to give it back. Guarded by the {@link
         * LocalQueue}.
         */
        boolean waits;

        LocalJob(ClaimedJob claimed, Unit unit, long at) {
            this.job = claimed.job();
            this.address = claimed.address();
            this.limited = claimed.limited();
            this.unit = unit;
            this.at = at;
        }
    }
}
