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
 * Reads jobs, queues, tasks, workers and pauses. Nothing here changes anything, so it also works in a read-only transaction and on a
 * replica. Thread-safe.
 *
 * <p>Each method joins the caller's Spring transaction on the same {@code DataSource}. All arguments are validated before any SQL is
 * executed. If the database cannot be used, each method throws a Spring {@code DataAccessException}.
 *
 * @since 0.1.0
 */
public interface JobQueries {

    /**
     * Returns what has become of jobs that were cancelled while they ran, in the order of the given ids. Others are left out, and so
     * are those whose run ended more than an hour ago.
     */
    List<Cancellation> cancellations(Collection<Long> ids);

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

    /** Returns what is paused, ordered by kind and name. */
    List<Pause> pauses();

    /**
     * Selects the jobs that match a filter, in order to {@linkplain JobChanges#change change} them. Running jobs are included, and
     * left alone by the change if they are still running then, unless it {@linkplain JobChange.Cancel cancels} them. Without a {@linkplain JobQuery#scanLimit() scan limit} all jobs are read
     * where no index helps.
     *
     * @param filter what the jobs match; its page and sort are ignored
     * @param most maximum number of jobs to select, 1 to 1,000,000
     */
    JobSelection select(JobQuery filter, int most);

    /**
     * Returns why a job does not run at the moment; empty if there is no such job. Reads a bounded number of jobs, and all predecessors of
     * a job that waits for others. What only
     * workers know is left out: flags that they forbid, handlers that are busy, and the tasks of Node.js workers, which do not
     * register.
     */
    Optional<JobWait> waitOf(long id);

    /**
     * Returns what is recorded of the {@linkplain dev.pgworker.step.JobSteps steps} of a job, in the order in which they began; empty if it has
     * none. Of a job that has ended as long as the history has an entry of it, or for moments if it has none.
     *
     * @param results whether to read the results as well, which may be as confidential as payloads
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
     * Returns what {@link WorkerOperations#cleanup} would remove, without removing anything. Reads a bounded number of rows: counts up to
     * 10,000, of the first 50,000 tasks and queues.
     */
    CleanupPreview previewCleanup(Set<CleanupTask> tasks);

    /** Returns what became of jobs. */
    JobHistory history();

    /** Returns figures of the last 24 hours. */
    JobStatistics statistics();
}
