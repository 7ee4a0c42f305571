package dev.pgworker.job;

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Optional;

import tools.jackson.databind.JsonNode;

/**
 * Changes jobs manually. Thread-safe.
 *
 * <p>Except for {@link #change} and {@link #awaitCancellations}, each method joins the caller's Spring transaction on the same {@code DataSource}; without one, its
 * changes are committed when it returns. A change that makes a job due wakes idle workers on commit. All arguments are validated
 * before any SQL is executed. If the database cannot be used, each method throws a Spring {@code DataAccessException}.
 *
 * <p>Running jobs are skipped, except by {@code cancel} and {@link #remove(String)}; a lock older than four hours is ignored unless its worker has sent a
 * heartbeat within the last hour. Methods that take ids return only the jobs that they changed, in the order of the given ids. Every
 * change is logged as one line and published as {@link dev.pgworker.event.WorkerEvent.JobsChanged}, after it is committed.
 *
 * @since 0.1.0
 */
public interface JobChanges {

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
     * Gives permanently failed jobs another payload and all their attempts back, and reschedules them to now, by the database's
     * clock. They keep their ids, keys and finished steps. Other jobs are skipped.
     *
     * @param payload the payload that replaces the one of each job
     */
    List<Job> retryWith(Collection<Long> ids, JsonNode payload);

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
     * <p>Workers are notified when the caller's transaction commits. {@link #awaitCancellations} waits for the end.
     *
     * @return what became of each distinct id, in the order of the given ids
     */
    List<Cancellation> cancel(Collection<Long> ids);

    /** Same as {@link #cancel(Collection)} for the job with this key; empty if no job has it. */
    Optional<Cancellation> cancel(String jobKey);

    /**
     * Waits until none of the given jobs that were cancelled is running, and returns what {@link JobQueries#cancellations} does. Asks the
     * database several times per second. Returns earlier if the thread is interrupted, which it stays.
     *
     * @param limit how long to wait; 0 to 1 day
     * @return some may still be {@linkplain Cancellation.State#isOpen() open}, if the limit has elapsed
     * @throws IllegalArgumentException if the limit is not between these
     * @throws IllegalStateException if it is called in a transaction, at whose end the workers would be notified
     */
    List<Cancellation> awaitCancellations(Collection<Long> ids, Duration limit);

    /** Deletes jobs that are not running, and returns them as they were. */
    List<Job> remove(Collection<Long> ids);

    /**
     * Changes selected jobs, in chunks of up to 500, each in a transaction of its own, whatever becomes of the caller's.
     * Chunks that are done stay done if the change is stopped, by {@code progress} or by interrupting the thread, or fails.
     *
     * @param progress called after each chunk; may stop the change. What it throws is passed on
     * @throws org.springframework.dao.DataAccessException if a chunk fails; the message has how many jobs were done
     *     before
     */
    BulkResult change(JobSelection selection, JobChange change, BulkProgress progress);

    /**
     * Returns changes in the name of a user: each change is logged and published to listeners with that name. Without this method no user
     * is named.
     *
     * @param user the name of the user, 1 to 255 characters; in the log, characters that could forge lines are escaped
     */
    JobChanges actingAs(String user);
}
