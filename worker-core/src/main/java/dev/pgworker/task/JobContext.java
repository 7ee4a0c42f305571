package dev.pgworker.task;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;

/**
 * The running attempt of a job, as its handler sees it.
 *
 * <p>Valid while the handler runs. The methods may be called from any thread the handler uses. {@code toString()} is
 * fit for logs: it names job, task and attempt and never the payload.
 *
 * @since 0.1.0
 */
public interface JobContext {

    /** Returns the job as it was claimed. */
    Job job();

    /** Returns the id of the worker that runs the job, as {@code locked_by} has it. */
    String workerId();

    /** Returns where handlers add jobs; a handler's own transaction is joined as anywhere else. */
    JobScheduler jobScheduler();

    /**
     * Returns true once the worker wants the handler to end: it is shutting down and the grace period is over, the
     * handler's time is over, or the worker may have been declared dead. The thread that runs the handler has been
     * interrupted, too. A handler that then ends with an exception gives its job back without the attempt being counted,
     * unless its time is over.
     */
    boolean isInterrupted();

    /**
     * Asks whether the job is still this worker's, so that nobody else may run it meanwhile. The answer is that of the
     * database, on a connection of its own; false also if the database does not answer. Ask before a step that must not
     * be taken twice, and pass {@link #fencingToken} along, since the answer may be out of date when the step is taken. In a
     * direct batch the database is asked from the handler's own thread only; others are told what is known.
     */
    boolean isOwned();

    /**
     * Returns what tells this run of the job from every other: {@code job-attempt-time}, the job's id, the attempt, and
     * the time of the job's last change before the run, in microseconds by the database's clock. A later run of the same
     * job has a later time, even if the attempt of an earlier one does not count: a system that remembers the greatest
     * time it has seen can refuse the requests of a run that is over. For a direct task it is the time when the job was
     * locked or claimed.
     */
    default String fencingToken() {
        Instant changed = job().updatedAt();
        long micros = changed.getEpochSecond() * 1_000_000 + changed.getNano() / 1_000;
        return job().id() + "-" + attempt() + "-" + micros;
    }

    /** Returns which attempt this is, beginning with 1. */
    default int attempt() {
        return job().attempts();
    }

    /** Returns true if the job fails permanently should this attempt fail. */
    default boolean isLastAttempt() {
        return job().attempts() >= job().maxAttempts();
    }

    /** As {@link JobScheduler#addJob(String, Object)}. */
    default Job addJob(String identifier, @Nullable Object payload) {
        return jobScheduler().addJob(identifier, payload);
    }

    /** As {@link JobScheduler#addJob(String, Object, JobSpec)}. */
    default Job addJob(String identifier, @Nullable Object payload, JobSpec spec) {
        return jobScheduler().addJob(identifier, payload, spec);
    }

    /** As {@link JobScheduler#addJob(Task, Object)}. */
    default <P> Job addJob(Task<P> task, P payload) {
        return jobScheduler().addJob(task, payload);
    }

    /** As {@link JobScheduler#addJob(Task, Object, JobSpec)}. */
    default <P> Job addJob(Task<P> task, P payload, JobSpec spec) {
        return jobScheduler().addJob(task, payload, spec);
    }
}
