package dev.pgworker.job;

import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.Set;

import org.jspecify.annotations.Nullable;

import dev.pgworker.history.JobHistory;
import dev.pgworker.statistics.JobStatistics;
import dev.pgworker.step.JobStep;

/**
 * Inspects jobs and changes them manually.
 *
 * <p>Except for {@link #cleanup}, each method joins the caller's Spring transaction on the same {@code DataSource};
 * without one, its changes are committed when it returns. A change that makes a job due wakes idle workers on commit.
 * All arguments are validated before any SQL is executed.
 *
 * <p>Running jobs are skipped, except by {@code cancel}; a lock older than four hours is ignored unless its worker has sent a heartbeat within
 * the last hour. Methods that take ids return only the jobs that they changed, in the order of the given ids.
 *
 * @since 0.1.0
 */
public interface JobAdmin {

    /** Deletes jobs as if they had succeeded, and returns them as they were. */
    List<Job> complete(Collection<Long> ids);

    /** Marks jobs as permanently failed by using up their attempts, and records the reason as their last error. */
    List<Job> permanentlyFail(Collection<Long> ids, String reason);

    /** Changes the run time, the priority or the attempts of jobs. */
    List<Job> reschedule(Collection<Long> ids, Rescheduling rescheduling);

    /**
     * Reschedules jobs to now, by the database's clock. Permanently failed jobs get all their attempts back; other jobs keep
     * the number of attempts that they have used.
     */
    List<Job> runNow(Collection<Long> ids);

    /**
     * Deletes the job with this key and returns it. A running job finishes its attempt, loses its key and is not
     * retried; it is also returned, still locked.
     */
    Optional<Job> remove(String jobKey);

    /**
     * Cancels jobs. Those that wait or have failed are deleted. Those that run are interrupted in any worker, and
     * never run again, whatever their handlers do. A handler that succeeds before it can be stopped has succeeded, and its job is
     * complete.
     *
     * <p>Workers are told when the caller's transaction commits. {@link #awaitCancellations} waits for the end.
     *
     * @return what became of each distinct id, in the order of the given ids
     */
    List<Cancellation> cancel(Collection<Long> ids);

    /** Same as {@link #cancel(Collection)} for the job with this key; empty if no job has it. */
    Optional<Cancellation> cancel(String jobKey);

    /**
     * Returns what has become of jobs that were cancelled while they ran, in the order of the given ids. Others are left out, and so
     * are those whose run ended more than an hour ago.
     */
    List<Cancellation> cancellations(Collection<Long> ids);

    /**
     * Waits until none of the given jobs that were cancelled is running, and returns what {@link #cancellations} does. Asks the
     * database several times per second. Returns earlier if the thread is interrupted, which it stays.
     *
     * @param limit how long to wait; 0 to 1 day
     * @return some may still be {@linkplain Cancellation.State#isOpen() open}, if the limit has elapsed
     * @throws IllegalArgumentException if the limit is not between these
     * @throws IllegalStateException if it is called in a transaction, at whose end the workers would be told
     */
    List<Cancellation> awaitCancellations(Collection<Long> ids, Duration limit);

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

    /** Returns one job, with its payload. */
    Optional<Job> find(long id);

    /**
     * Returns those jobs that exist, in the order of the given ids.
     *
     * @param payloadLimit as that of a {@link JobQuery}, 0 to 1,000,000; of a single job the beginning of every payload is
     *     read, however large
     */
    List<Job> find(Collection<Long> ids, int payloadLimit);

    /**
     * Lists jobs. By id the cost of a page does not depend on its position. Without a {@linkplain JobQuery#scanLimit()
     * scan limit}, filters that match few jobs, and other orders, require a scan of all jobs.
     */
    JobPage list(JobQuery query);

    /**
     * Returns the number of jobs that match the filters, by state. Reads every job once, which takes some tenths of a second
     * for a million jobs, unless the filter has a {@linkplain JobQuery#scanLimit() scan limit}.
     */
    JobCounts count(JobQuery filter);

    /**
     * Returns the named queues, ordered by name.
     *
     * @param after the name after which to start; null to start with the first queue
     * @param limit maximum number of queues to return, 1 to 1000
     */
    List<NamedQueue> queues(@Nullable String after, int limit);

    /** Returns the time by the clock of the database, which decides what is due; see {@link JobState#of}. */
    Instant now();

    /**
     * Returns the backlog. Takes a few milliseconds whatever the number of jobs, and is therefore suitable for calls
     * every few seconds. Counts up to 10,000 jobs in each state, and uses the planner's statistics beyond that.
     */
    JobBacklog backlog();

    /**
     * Same as {@link #activeWorkers(Duration)}, with {@code pgworker.recovery.sweep-threshold}.
     */
    List<ActiveWorker> activeWorkers();

    /**
     * Returns the registered workers, ordered by start time. Dead workers are included until they are recovered. Reads all
     * jobs once, to count those that workers hold; {@link #registeredWorkers} does not.
     *
     * @param staleAfter the age of the last heartbeat beyond which a worker is stale; not negative
     */
    List<ActiveWorker> activeWorkers(Duration staleAfter);

    /**
     * Same as {@link #activeWorkers()}, without counting the jobs that the workers hold. Takes milliseconds whatever the
     * number of jobs.
     */
    List<ActiveWorker> registeredWorkers();

    /**
     * Recovers the jobs and queues of dead workers, as workers do automatically if {@code pgworker.recovery.enabled} is
     * true, and deletes the registrations of the dead workers. Recovery handlers are called, and the events of the
     * sweep are published to the listeners of this administration, if it has any. Reads all jobs once.
     */
    SweepResult sweep(SweepOptions options);

    /**
     * Returns an administration that does the same in the name of a user: its changes are logged and told to listeners
     * with that name. Every change is logged as one line and told as {@link dev.pgworker.event.WorkerEvent.JobsChanged},
     * after it is committed; without this method no user is named.
     *
     * @param user the name of the user, 1 to 255 characters; in the log, characters that could forge lines are escaped
     */
    JobAdmin actingAs(String user);

    /** Deletes jobs that are not running, and returns them as they were. */
    List<Job> remove(Collection<Long> ids);

    /**
     * Has no more jobs of a task or a named queue started, or none at all, until that is {@linkplain #resume resumed}. Running
     * jobs go on; jobs that workers have claimed and not started are given back, without having cost an attempt. A pause is kept in
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

    /** Returns what is paused, ordered by kind and name. */
    List<Pause> pauses();

    /**
     * Selects the jobs that match a filter, in order to {@linkplain #change change} them. Running jobs are included, and
     * left alone by the change if they are still running then, unless it {@linkplain JobChange.Cancel cancels} them. Without a {@linkplain JobQuery#scanLimit() scan limit} all jobs are read
     * where no index helps.
     *
     * @param filter what the jobs match; its page and sort are ignored
     * @param most maximum number of jobs to select, 1 to 1,000,000
     */
    JobSelection select(JobQuery filter, int most);

    /**
     * Changes selected jobs, in chunks of up to 500, each in a transaction of its own, whatever becomes of the caller's.
     * Chunks that are done stay done if the change is stopped, by {@code progress} or by interrupting the thread, or fails.
     *
     * @param progress called after each chunk; may stop the change. What it throws is passed on
     * @throws org.springframework.dao.DataAccessException if a chunk fails; the message says how many jobs were done before
     */
    BulkResult change(JobSelection selection, JobChange change, BulkProgress progress);

    /**
     * Returns why a job does not run at the moment; empty if there is no such job. Reads a bounded number of rows. What only
     * workers know is left out: flags that they forbid, handlers that are busy, and the tasks of Node.js workers, which do not
     * register.
     */
    Optional<JobWait> waitOf(long id);

    /**
     * Returns what is recorded of the {@linkplain dev.pgworker.step.JobSteps steps} of a job, in the order in which they began; empty if it has
     * none. Of a job that has ended as long as the history has an entry of it, or for moments if it has none.
     *
     * @param results whether to read the results as well, which tell as much as payloads do
     */
    List<JobStep> steps(long id, boolean results);

    /**
     * Returns the jobs that PgWorker workers have been running for a second or more, or that have reported progress; the
     * longest-running first.
     *
     * @param limit maximum number of jobs to return, 1 to 1000
     */
    List<RunningJob> running(int limit);

    /**
     * Returns the tasks that jobs or workers use, ordered by name. Reads a bounded number of rows.
     *
     * @param after the name after which to start; null to start with the first task
     * @param limit maximum number of tasks to return, 1 to 1000
     */
    List<TaskSummary> tasks(@Nullable String after, int limit);

    /**
     * Returns what {@link #cleanup} would remove, without removing anything. Reads a bounded number of rows: counts up to
     * 10,000, of the first 50,000 tasks and queues.
     */
    CleanupPreview previewCleanup(Set<CleanupTask> tasks);

    /** Returns what became of jobs. */
    JobHistory history();

    /** Returns figures of the last 24 hours. */
    JobStatistics statistics();
}
