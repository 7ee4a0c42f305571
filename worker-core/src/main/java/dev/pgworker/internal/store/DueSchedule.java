package dev.pgworker.internal.store;

import java.time.Instant;

/**
 * A schedule that is due, as it is in the locked row.
 *
 * @param nextAt since when it is due; {@link ScheduleRow#COMPUTE} if that has to be found out
 * @param lastJobLives whether the job of the last execution waits or runs, as far as that matters
 */
public record DueSchedule(ScheduleRow row, Instant nextAt, boolean lastJobLives) {

    /** Returns the schedule's name. */
    public String name() {
        return row.status().id();
    }
}
