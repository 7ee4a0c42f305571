package dev.pgworker.internal.engine.queue;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.store.RowLock;
import dev.pgworker.job.Job;

/** A claim that is not settled. Guarded by the {@link LocalQueue} that it belongs to. */
final class LocalJob {

    /** How far a claim has come. */
    enum Stage {
        /** Ready, or behind another job of its queue. */
        WAITING,
        /** To be given back without having been started. */
        EXPIRED,
        /** Handed out. */
        TAKEN
    }

    final Job job;

    /** The {@link System#nanoTime} at which the claim was taken in. */
    final long at;

    Stage stage = Stage.TAKEN;

    /** The lock since it was renewed; null if it never was. */
    @Nullable RowLock lock;

    /** By {@link System#nanoTime}. */
    long renewedAt;

    LocalJob(Job job, long at) {
        this.job = job;
        this.at = at;
        renewedAt = at;
    }

    /** The order in which jobs start: that of the claim. */
    static int compareStart(LocalJob one, LocalJob other) {
        int order = Integer.compare(one.job.priority(), other.job.priority());
        if (order == 0) {
            order = one.job.runAt().compareTo(other.job.runAt());
        }
        return order == 0 ? Long.compare(one.job.id(), other.job.id()) : order;
    }
}
