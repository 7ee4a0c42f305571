package dev.pgworker.schedule;

import java.util.List;
import java.util.Optional;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;

/**
 * Makes, changes and removes recurring jobs at run time. They are rows of the database, and any worker of the schema executes
 * them: each due time of a schedule adds one job, however many workers there are. A change takes effect within a second.
 *
 * <p>Every method runs on the caller's thread and joins the caller's Spring transaction on the worker's {@code DataSource};
 * without one it commits on return. Thread-safe. If the database cannot be used, each method throws a Spring {@code
 * DataAccessException}.
 *
 * @since 0.1.0
 */
public interface JobSchedules {

    /**
     * Creates a schedule.
     *
     * @throws org.springframework.dao.DuplicateKeyException if there is one of that name
     * @throws IllegalArgumentException if the payload is not written as a JSON object
     */
    ScheduleStatus create(Schedule schedule);

    /**
     * Creates a schedule or changes the one that has the name. One that is paused remains so. If its recurrence, start and
     * end stay the same, so does its next due time.
     *
     * @throws IllegalArgumentException if the payload is not written as a JSON object
     */
    ScheduleStatus put(Schedule schedule);

    /** Deletes a schedule; its jobs remain. Returns whether there was one. */
    boolean delete(String name);

    /** Pauses a schedule until it is resumed. Returns whether it was not paused before; false if there is none. */
    boolean pause(String name);

    /** Resumes a schedule; it does not catch up on executions during the pause. Returns whether it was paused. */
    boolean resume(String name);

    /** Returns a schedule, if there is one of that name. */
    Optional<ScheduleStatus> find(String name);

    /** Returns schedules in the order of their names. */
    List<ScheduleStatus> list(ScheduleQuery query);

    /**
     * Adds a job of a schedule that runs immediately, even if it is paused. Due times are not affected.
     *
     * @throws IllegalArgumentException if there is no schedule of that name
     * @throws IllegalStateException if its job cannot be read, because somebody has written it by SQL
     */
    Job trigger(String name);

    /**
     * Same as {@link #trigger(String)}, with another payload.
     *
     * @param payload what Jackson writes as a JSON object; null for the empty object
     */
    Job trigger(String name, @Nullable Object payload);

    /** Returns these schedules with the user named in log lines and in {@link ScheduleStatus#pausedBy}. */
    JobSchedules actingAs(String user);
}
