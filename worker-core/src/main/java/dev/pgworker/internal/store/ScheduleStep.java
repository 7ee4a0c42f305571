package dev.pgworker.internal.store;

import java.time.Instant;
import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.JobSpec;

/**
 * What becomes of a schedule that is due: the jobs to add, and what its row has afterwards.
 *
 * @param due as it was locked
 * @param jobs in the order in which to add them
 * @param nextAt when it is due next; null if that is not known, or never
 * @param awaitsEnd whether it is due again some time after the end of the job added last
 * @param laterAt when to continue apart from those that are in time, as it runs missed executions or is slow; null if
 *     with them
 * @param problem why it is no longer executed; null if it is
 */
public record ScheduleStep(
        DueSchedule due,
        List<NewJob> jobs,
        @Nullable Instant nextAt,
        boolean awaitsEnd,
        @Nullable Instant laterAt,
        @Nullable String problem) {

    /** Stands for the next due time while that is not known: {@link ScheduleEnds} puts it in this one's place. */
    private static final Instant AFTER_THE_END = Instant.parse("9999-01-01T00:00:00Z");

    /** Returns the same, but to continue apart from those that are in time. */
    ScheduleStep apart() {
        Instant next = awaitsEnd ? AFTER_THE_END : nextAt;
        return new ScheduleStep(due, jobs, nextAt, awaitsEnd, laterAt == null ? next : laterAt, problem);
    }

    /**
     * A job of a schedule.
     *
     * @param dueAt for when
     * @param backfilled whether that was missed
     * @param payload JSON
     * @param spec with the time at which it runs
     */
    public record NewJob(Instant dueAt, boolean backfilled, String task, String payload, JobSpec spec) {}
}
