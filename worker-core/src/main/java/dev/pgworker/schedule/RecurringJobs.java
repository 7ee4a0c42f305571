package dev.pgworker.schedule;

import java.util.List;
import java.util.Optional;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;

/**
 * Manages all recurring jobs of a schema: items of crontabs, schedules that applications declare, and schedules of the database. The
 * last ones are created, changed and deleted here at run time. Any worker of the schema executes a schedule of the database: each due time adds
 * one job, however many workers there are. A change takes effect within a second. Thread-safe.
 *
 * <p>An id is the name of a schedule or the identifier of a crontab's item. If both exist, it means the schedule.
 *
 * <p>Every method runs on the caller's thread and joins the caller's Spring transaction on the worker's {@code DataSource}; without
 * one it commits on return. If the database cannot be used, each method throws a Spring {@code DataAccessException}.
 *
 * @since 0.1.0
 */
public interface RecurringJobs {

    /**
     * Creates a schedule.
     *
     * @throws org.springframework.dao.DuplicateKeyException if there is one of that name
     * @throws IllegalArgumentException if the payload is not written as a JSON object
     */
    RecurringJob create(Schedule schedule);

    /**
     * Creates a schedule or changes the one that has the name. One that is paused remains so. If its recurrence, start and
     * end stay the same, so does its next due time.
     *
     * @throws IllegalArgumentException if the payload is not written as a JSON object
     */
    RecurringJob put(Schedule schedule);

    /**
     * Deletes a schedule, or forgets a crontab's item that no crontab has any longer, with its pause. Jobs added before remain.
     * An application that declares a deleted schedule creates it again when it starts.
     *
     * <p>A worker whose crontab still has a forgotten item registers it again with its next execution, as if it were
     * new: its missed executions do not run, and the minute in which it was forgotten may be executed twice.
     *
     * @return whether there was one
     * @throws IllegalArgumentException if the item is in this application's crontab
     */
    boolean delete(String id);

    /**
     * Pauses a recurring job until it is resumed; neither due times nor missed ones add jobs. Waits for an execution under way. Jobs
     * added before are kept. A Node.js or Rust Graphile Worker with the same crontab's item ignores pauses.
     *
     * @return whether it was not paused before
     * @throws IllegalArgumentException if there is no such recurring job
     */
    boolean pause(String id);

    /**
     * Resumes a recurring job; it does not catch up on executions during the pause.
     *
     * @return whether it was paused
     * @throws IllegalArgumentException if there is no such recurring job
     */
    boolean resume(String id);

    /** Returns a recurring job, if there is one. */
    Optional<RecurringJob> find(String id);

    /**
     * Returns recurring jobs in the order of their ids: the items of this application's crontab and those that others have
     * registered, and schedules. May return one more than the limit if two have the last id.
     */
    List<RecurringJob> list(RecurringQuery query);

    /**
     * Adds a job of a recurring job that runs immediately, even if that is paused. Due times are not affected. The job has the usual
     * options and {@code _cron}, with the current time.
     *
     * @return the job; with a job key, possibly one that existed before
     * @throws IllegalArgumentException if there is no such schedule, and no such item in this application's crontab
     * @throws IllegalStateException if the schedule was written by SQL and its job cannot be read
     */
    Job trigger(String id);

    /**
     * Same as {@link #trigger(String)}, with another payload.
     *
     * @param payload what Jackson writes as a JSON object; null for the empty object
     */
    Job trigger(String id, @Nullable Object payload);

    /** Returns these recurring jobs with the user named in log lines and, of schedules, in {@link RecurringJob#pausedBy}. */
    RecurringJobs actingAs(String user);
}
