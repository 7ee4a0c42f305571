package dev.pgworker.task;

import java.time.Instant;
import java.util.Optional;

import org.jspecify.annotations.Nullable;

import dev.pgworker.flow.PredecessorResults;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.step.JobSteps;

/**
 * The running attempt of a job, as its handler sees it.
 *
 * <p>Valid while the handler runs. The methods may be called from any thread that the handler uses. {@code toString()}
 * is suitable for logs: it contains the job, the task and the attempt, but never the payload.
 *
 * @since 0.1.0
 */
public interface JobContext {

    /** Returns the job as it was claimed. */
    Job job();

    /** Returns the id of the worker that runs the job, as {@code locked_by} has it. */
    String workerId();

    /** Returns the scheduler with which handlers add jobs; it joins the handler's transaction if there is one. */
    JobScheduler jobScheduler();

    /**
     * Returns true once the handler should end. Either the worker is shutting down and the grace period has elapsed, or the
     * handler has exceeded its timeout, or its job has been cancelled, or the worker may have been declared dead. The thread
     * that runs the handler has also been interrupted. If the handler then ends with an exception, its job is released
     * without counting the attempt, unless the timeout was exceeded or the job has been {@linkplain #isCancelled()
     * cancelled}.
     */
    boolean isInterrupted();

    /**
     * Returns true once the job has been cancelled, as far as this worker knows. Does not query the database: workers
     * are notified within milliseconds. A handler that then ends with an exception is not retried, and its job is
     * deleted. One that returns normally has succeeded.
     */
    default boolean isCancelled() {
        return false;
    }

    /**
     * Ends the handler if the job has been cancelled. Call this where the handler can stop without leaving anything half done.
     *
     * @throws JobCancelledException if {@link #isCancelled} returns true
     */
    default void throwIfCancelled() {
        if (isCancelled()) {
            throw new JobCancelledException();
        }
    }

    /**
     * Returns whether this worker still holds the job, so that no other worker can be running it. Queries the database,
     * on a separate connection, and returns false if the database does not respond. Call this before a step that must
     * not be taken twice, and pass {@link #fencingToken} along, because the answer may be out of date when the step is
     * taken. In a direct batch, the database is queried only if this is called on the handler's own thread; on other
     * threads, the last known state is returned.
     */
    boolean isOwned();

    /**
     * Returns a token that distinguishes this run of the job from every other. It is {@code job-attempt-time}, consisting of
     * the job's id, the attempt, and the time of the job's last change before the run, in microseconds by the
     * database's clock. A later run of the same job has a later time, even if the attempt of an earlier run does not
     * count, so a system that remembers the greatest time it has seen can reject requests of an earlier run. For a
     * direct task, the time is when the job was locked or claimed.
     */
    default String fencingToken() {
        Instant changed = job().updatedAt();
        long micros = changed.getEpochSecond() * 1_000_000 + changed.getNano() / 1_000;
        return job().id() + "-" + attempt() + "-" + micros;
    }

    /**
     * Returns the steps of the job, of which each is run once for all attempts.
     *
     * @throws UnsupportedOperationException if the task is direct
     */
    default JobSteps steps() {
        throw new UnsupportedOperationException("This context has no steps");
    }

    /**
     * Returns how the jobs have ended that this one has waited for, by a {@linkplain dev.pgworker.flow.JobFlow flow}.
     * Read from the database when that is first used, in the handler's transaction if there is one. None for a job that
     * has waited for no other.
     */
    default PredecessorResults predecessors() {
        return PredecessorResults.NONE;
    }

    /** Returns the number of this attempt, starting at 1. */
    default int attempt() {
        return job().attempts();
    }

    /** Returns true if the job will fail permanently if this attempt fails. */
    default boolean isLastAttempt() {
        return job().attempts() >= job().maxAttempts();
    }

    /**
     * Returns the execution of the recurring job that this job was added for, whichever of the Graphile Workers added
     * it. Empty for a job that belongs to none, or does not show it: a Rust worker adds no {@code _cron} for a crontab
     * item without a payload, and a payload may come without {@code _cron} from an interceptor. Read from the payload
     * each time.
     */
    default Optional<ScheduledRun> scheduledRun() {
        return ScheduledRun.of(job());
    }

    /** Same as {@link JobScheduler#addJob(String, Object)}. */
    default Job addJob(String identifier, @Nullable Object payload) {
        return jobScheduler().addJob(identifier, payload);
    }

    /** Same as {@link JobScheduler#addJob(String, Object, JobSpec)}. */
    default Job addJob(String identifier, @Nullable Object payload, JobSpec spec) {
        return jobScheduler().addJob(identifier, payload, spec);
    }

    /** Same as {@link JobScheduler#addJob(Task, Object)}. */
    default <P> Job addJob(Task<P> task, P payload) {
        return jobScheduler().addJob(task, payload);
    }

    /** Same as {@link JobScheduler#addJob(Task, Object, JobSpec)}. */
    default <P> Job addJob(Task<P> task, P payload, JobSpec spec) {
        return jobScheduler().addJob(task, payload, spec);
    }

    /**
     * Reports how far the handler has come. Returns immediately: the worker records the latest report about once per
     * second, and drops those in between.
     *
     * @param done how much is done, in units of the handler's choice; not negative
     * @param total how much there is to do, in the same units; 0 if unknown
     * @param text what is being done; null for nothing; cut after 1,000 characters
     * @throws IllegalArgumentException if a number is negative
     */
    default void progress(long done, long total, @Nullable String text) {}

    /**
     * Sets the result of this run, for those who wait for it ({@link dev.pgworker.job.JobScheduler#addJobForResult})
     * and for the history, if it is enabled ({@code pgworker.history.enabled}). A value that the handler method returns
     * takes its place. Does nothing if the result is not waited for and no history is kept.
     *
     * @param result a value that Jackson can write, encoded by this call; null for none. A result that is larger than
     *     {@code pgworker.results.max-size} is not kept, and the history keeps none that is larger than {@code
     *     pgworker.history.max-result-size}
     * @throws PayloadException if the value cannot be encoded
     */
    default void result(@Nullable Object result) {}
}
