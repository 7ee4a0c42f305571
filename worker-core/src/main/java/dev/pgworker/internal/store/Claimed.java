package dev.pgworker.internal.store;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;

/**
 * What a claim has locked.
 *
 * @param jobs in the order in which they are to start
 * @param unreadable those whose rows could not be read
 * @param at as of when there are no others that this worker may claim, by the database's clock; null if there may be
 * @param again whether it is worth looking again soon, because a row was locked for the moment
 * @param untilNext how long until limits, or the time of a job that waits for some, let another one start; null if that is unknown
 */
public record Claimed(
        List<ClaimedJob> jobs,
        List<Unreadable> unreadable,
        @Nullable Instant at,
        boolean again,
        @Nullable Duration untilNext) {

    /**
     * A job whose row could not be read.
     *
     * @param job what could be read of it
     * @param error why
     */
    public record Unreadable(ClaimedJob job, Throwable error) {}

    private static final Comparator<ClaimedJob> START = Comparator.<ClaimedJob>comparingInt(
                    one -> one.job().priority())
            .thenComparing(one -> one.job().runAt())
            .thenComparingLong(one -> one.job().id());

    Claimed() {
        this(new ArrayList<>(), new ArrayList<>(), null, false, null);
    }

    /** Returns this, ended by the row that a claim returns last if there are no more. */
    Claimed ended(@Nullable Instant time, boolean lookAgain, @Nullable Instant next) {
        jobs.sort(START);
        Duration until = time == null || next == null ? null : Duration.between(time, next);
        return new Claimed(jobs, unreadable, time, lookAgain, until);
    }

    /** Returns how many jobs there are. */
    public int size() {
        return jobs.size() + unreadable.size();
    }

    /** Returns the jobs that can be run. */
    public List<Job> readable() {
        return jobs.stream().map(ClaimedJob::job).toList();
    }
}
