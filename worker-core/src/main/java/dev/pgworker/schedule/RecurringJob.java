package dev.pgworker.schedule;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * A recurring job as the database knows it. All times are by the database's clock.
 *
 * @param id the name of the schedule or the identifier of the crontab's item
 * @param origin where it is defined
 * @param schedule what it does; of a crontab's item as far as a schedule can express that. Null for an item that only
 *     other applications have, and for a schedule that was written by SQL and cannot be read: then the problem has the
 *     reason
 * @param nextRun when it is due next; null while it is paused, has ended, cannot be read or waits for the end of a job, and for an item
 *     that only other applications have
 * @param lastRun the due time of the last execution; for a crontab's item also one that was skipped because of a pause. Null for none
 * @param lastJobId the job of a schedule's last execution, which may no longer exist; null for none
 * @param pausedSince since when it is paused; null if it is not
 * @param pausedBy who paused the schedule; null if no name was given
 * @param problem why the schedule is not executed; null if it is
 * @param createdAt when the schedule was created or a worker first registered the item; null if none has registered it yet
 * @param updatedAt when the schedule was last changed, executions do not count; null for a crontab's item
 * @since 0.1.0
 */
public record RecurringJob(
        String id,
        Origin origin,
        @Nullable Schedule schedule,
        @Nullable Instant nextRun,
        @Nullable Instant lastRun,
        @Nullable Long lastJobId,
        @Nullable Instant pausedSince,
        @Nullable String pausedBy,
        @Nullable String problem,
        @Nullable Instant createdAt,
        @Nullable Instant updatedAt) {

    /**
     * Where a recurring job is defined.
     *
     * @since 0.1.0
     */
    public enum Origin {

        /** In a crontab, which Graphile Workers of other languages may share. */
        CRONTAB,

        /** In an application that declares the schedule at its start; only such applications execute it. */
        DECLARED,

        /** In the database, at run time. */
        DATABASE
    }

    /** Returns true if it is paused, so that it is not executed until it is resumed. */
    public boolean isPaused() {
        return pausedSince != null;
    }

    /** Returns the task of its jobs; null if that is not known. */
    public @Nullable String task() {
        return schedule == null ? null : schedule.job().identifier();
    }
}
