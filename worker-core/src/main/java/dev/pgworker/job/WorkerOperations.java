package dev.pgworker.job;

import java.time.Duration;
import java.util.Collection;
import java.util.Set;

import org.jspecify.annotations.Nullable;

/**
 * Operates the workers of a schema: pauses, recovery and clean-up. Thread-safe.
 *
 * <p>Except for {@link #cleanup}, each method joins the caller's Spring transaction on the same {@code DataSource}; without one, its
 * changes are committed when it returns. All arguments are validated before any SQL is executed. If the database cannot be used, each
 * method throws a Spring {@code DataAccessException}. Every change is logged as one line and published as {@link
 * dev.pgworker.event.WorkerEvent.JobsChanged}, after it is committed.
 *
 * @since 0.1.0
 */
public interface WorkerOperations {

    /**
     * Releases all jobs and queues of workers that are known to be dead. Jobs that have attempts left run again
     * immediately; the interrupted attempts count.
     */
    void forceUnlockWorkers(Collection<String> workerIds);

    /**
     * Removes data that is no longer used, in transactions of its own.
     *
     * <p>Unused tasks and queues are deleted under an exclusive lock on their table, for which other sessions wait
     * briefly. If another transaction prevents the lock, or if the deletion would take longer than about a second,
     * nothing is deleted and the task is reported as skipped. The caller's own transaction has this effect if it has
     * added jobs.
     *
     * <p>A transaction at isolation level REPEATABLE READ or SERIALIZABLE that began before the cleanup and then adds a
     * job under a deleted name fails with SQLSTATE 40001 and should be retried.
     */
    CleanupResult cleanup(Set<CleanupTask> tasks);

    /**
     * As {@link #cleanup(Set)}, but of the jobs that have failed permanently it removes only those that failed long ago. If
     * the calling thread is interrupted while it removes these, it removes no more of them.
     *
     * @param failedJobsOlderThan how long ago the last attempt of a failed job must have ended, by the database's clock; 0
     *     to 3650 days
     * @throws IllegalArgumentException if it is not between these
     */
    CleanupResult cleanup(Set<CleanupTask> tasks, Duration failedJobsOlderThan);

    /**
     * Recovers the jobs and queues of dead workers, as workers do automatically if {@code pgworker.recovery.enabled} is
     * true, and deletes the registrations of the dead workers. Recovery handlers are called, and the events of the
     * sweep are published to the listeners of these operations, if it has any. Reads all jobs once.
     */
    SweepResult sweep(SweepOptions options);

    /**
     * Has no more jobs of a task or a named queue started, or none at all, until that is {@linkplain #resume resumed}. Running
     * jobs continue; jobs that workers have claimed and not started are given back, without having cost an attempt. A pause is kept in
     * the database and holds in all applications from about the commit on, whether they run or start later.
     *
     * <p>The user of {@link #actingAs} is recorded as the one who has paused it.
     *
     * @param reason why, 1 to 1,000 characters; null or empty for none
     * @return false if it was paused already, which is left as it is
     */
    boolean pause(PauseTarget target, @Nullable String reason);

    /**
     * Ends a pause. Of a queue one of whose jobs has been running all the time, the next one starts when that has ended; to find
     * out, all jobs are read once if one was running when the queue was paused.
     *
     * @return false if it was not paused
     */
    boolean resume(PauseTarget target);

    /**
     * Returns operations in the name of a user: each change is logged and published to listeners with that name. Without this method no user
     * is named.
     *
     * @param user the name of the user, 1 to 255 characters; in the log, characters that could forge lines are escaped
     */
    WorkerOperations actingAs(String user);
}
