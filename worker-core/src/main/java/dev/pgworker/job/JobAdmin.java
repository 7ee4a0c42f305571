package dev.pgworker.job;

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.Set;

import org.jspecify.annotations.Nullable;

/**
 * Looks at jobs and changes them by hand.
 *
 * <p>Except for {@link #cleanup}, a call joins the caller's Spring transaction on the same {@code DataSource}; without
 * one it has taken effect when it returns. Whatever makes a job due wakes idle workers when it is committed. Every
 * argument is checked before any SQL runs.
 *
 * <p>Running jobs are passed over; a lock older than four hours counts as none unless its worker has sent a heartbeat
 * within the last hour. Methods that take ids return only the
 * jobs they changed, in the order of the given ids.
 *
 * @since 0.1.0
 */
public interface JobAdmin {

    /** Deletes jobs as if they had succeeded, and returns them as they were. */
    List<Job> complete(Collection<Long> ids);

    /** Uses up the attempts of jobs, so that they do not run again, and records why. */
    List<Job> permanentlyFail(Collection<Long> ids, String reason);

    /** Changes when and how often jobs run. */
    List<Job> reschedule(Collection<Long> ids, Rescheduling rescheduling);

    /**
     * Makes jobs due, by the clock of the database. Those that have failed permanently get all their attempts back; others
     * keep the count of those they have used.
     */
    List<Job> runNow(Collection<Long> ids);

    /**
     * Deletes the job with this key and returns it. A running job finishes its attempt, loses its key and is not tried
     * again; it is returned as well, still locked.
     */
    Optional<Job> remove(String jobKey);

    /**
     * Takes all jobs and queues away from workers, which must be known to be dead: their jobs run again at once, as far
     * as they have attempts left. The interrupted attempts count.
     */
    void forceUnlockWorkers(Collection<String> workerIds);

    /**
     * Removes what is no longer of use, in transactions of its own.
     *
     * <p>Unused tasks and queues are deleted while nobody else uses the table concerned. That takes a moment in which
     * others wait; where a transaction keeps it from starting or it would take longer than about a second, nothing is
     * deleted and the task reported as skipped. One such transaction is that of the caller, if it has added jobs.
     *
     * <p>A transaction at isolation level REPEATABLE READ or SERIALIZABLE that began before and then adds a job under a
     * name that was deleted fails with SQLSTATE 40001 and is to be run again.
     */
    CleanupResult cleanup(Set<CleanupTask> tasks);

    /** Returns one job, with its payload. */
    Optional<Job> find(long id);

    /** Lists jobs, newest first. A page costs the same at any depth; filters that few jobs pass cost a look at all. */
    JobPage list(JobQuery query);

    /**
     * Counts the jobs that pass the filters, by state, exactly: reads every job once, which takes some tenths of a second
     * for a million.
     */
    JobCounts count(JobQuery filter);

    /**
     * Returns the named queues by their names.
     *
     * @param after the name after which to begin; null for the first queues
     * @param limit how many at most, 1 to 1000
     */
    List<NamedQueue> queues(@Nullable String after, int limit);

    /**
     * Tells what there is to do, for a look every few seconds: some milliseconds whatever the number of jobs. Counts up to
     * 10,000 jobs of a state and takes the planner's statistics for more.
     */
    JobBacklog backlog();

    /**
     * As {@link #activeWorkers(Duration)}, with {@code worker.recovery.sweep-threshold}.
     */
    List<ActiveWorker> activeWorkers();

    /**
     * Returns the registered workers, those that started first at the front, dead ones until they are recovered.
     *
     * @param staleAfter how old the last heartbeat of a stale worker is; not negative
     */
    List<ActiveWorker> activeWorkers(Duration staleAfter);

    /**
     * Takes the jobs and queues of dead workers from them, as workers do by themselves if
     * {@code worker.recovery.enabled} is set, and deletes their registrations. Recovery handlers are asked; no events are
     * published. Reads all jobs once.
     */
    SweepResult sweep(SweepOptions options);
}
