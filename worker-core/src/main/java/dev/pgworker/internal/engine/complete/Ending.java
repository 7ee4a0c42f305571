package dev.pgworker.internal.engine.complete;

import java.time.Duration;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.engine.run.EncodedOutcome;
import dev.pgworker.internal.engine.run.JobOutcome;
import dev.pgworker.internal.failure.Backoff;
import dev.pgworker.job.Job;

/** An outcome on its way to the database. Owned by {@code worker-complete}. */
final class Ending {

    EncodedOutcome ended;

    /** Set once a statement about it has failed: it may be written already. */
    boolean tried;

    /** Set once it was in a group that was refused. */
    boolean alone;

    /** When it was first refused, by {@link System#nanoTime}. */
    long refusedAt;

    /** Whether its row was locked at the last write. */
    boolean busy;

    /** Set while it is refused though others are written; it is not tried again before {@link #waitUntil}. */
    @Nullable Backoff backoff;

    /** By {@link System#nanoTime}. */
    long waitUntil;

    /**
     * The failure that shows that there is no room for it on a disk of the server; null if it waits for another reason.
     */
    @Nullable Throwable fullDisk;

    /** Whether it has been logged that it waits though others are written. */
    boolean toldWaiting;

    int failures;

    Ending(EncodedOutcome ended) {
        this.ended = ended;
    }

    Job job() {
        return ended.job();
    }

    boolean isWaiting() {
        return backoff != null && System.nanoTime() - waitUntil < 0;
    }

    /** Takes note of a failed write; returns how many there have been. */
    int failed() {
        return ++failures;
    }

    boolean isRefusedFor(Duration duration) {
        return System.nanoTime() - refusedAt >= duration.toNanos();
    }

    /** Has it written by itself from here on. */
    void isolate() {
        alone = true;
        refusedAt = System.nanoTime();
        failures = 0;
    }

    boolean isSuccess() {
        return ended.outcome() instanceof JobOutcome.Success;
    }
}
