package dev.pgworker.schedule;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * A schedule as the database has it. All times are by the database's clock.
 *
 * @param name the schedule's name
 * @param schedule the schedule; null if it cannot be read, because somebody has written it by SQL: then the problem says why
 * @param declared whether applications declare it at their start, so that only those execute it
 * @param nextRun when it is due next; null while it is paused, has ended, cannot be read, or waits for the end of a job
 * @param lastRun the due time of the last execution; null for none
 * @param lastJobId the job of the last execution, which may no longer exist; null for none
 * @param pausedSince since when it is paused; null if it is not
 * @param pausedBy who paused it; null if nobody has been named
 * @param problem why it is not executed; null if it is
 * @param createdAt when it was created
 * @param updatedAt when it was last changed; executions do not count
 * @since 0.1.0
 */
public record ScheduleStatus(
        String name,
        @Nullable Schedule schedule,
        boolean declared,
        @Nullable Instant nextRun,
        @Nullable Instant lastRun,
        @Nullable Long lastJobId,
        @Nullable Instant pausedSince,
        @Nullable String pausedBy,
        @Nullable String problem,
        Instant createdAt,
        Instant updatedAt) {

    /** Returns true if the schedule is paused, so that it is not executed until it is resumed. */
    public boolean isPaused() {
        return pausedSince != null;
    }
}
