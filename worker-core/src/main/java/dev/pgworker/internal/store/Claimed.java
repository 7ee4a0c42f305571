package dev.pgworker.internal.store;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;

/**
 * Jobs that have been claimed.
 *
 * @param jobs in the order in which they are to start
 * @param cut whether there may be more: those that were found had too many bytes, queues in front had less than usual, or, without any
 *     jobs, a second chain was refused, because other claims are under way
 * @param at when, by the database's clock; null if that is not known
 * @param passedOver a queue that somebody held for the moment, though it may have due jobs for which there was room; null if none was
 */
public record Claimed(
        List<Job> jobs,
        List<Unreadable> unreadable,
        boolean cut,
        @Nullable Instant at,
        @Nullable String passedOver) {

    Claimed() {
        this(new ArrayList<>(), new ArrayList<>(), false, null, null);
    }

    /** Returns how many jobs have been claimed. */
    public int size() {
        return jobs.size() + unreadable.size();
    }
}
