package dev.pgworker.task;

import dev.pgworker.job.DeadWorker;
import dev.pgworker.job.Job;

/**
 * Decides what happens to a job whose worker has died. All recovery handlers of a worker are called in order, until one
 * returns a decision other than {@link RecoveryDecision#useDefault()}.
 *
 * <p>Called by the sweep, for one job after the other, before any job's row is locked, but while other sweeps of the
 * database wait; implementations should therefore be fast. Exceptions are logged, and the job is recovered as usual. It
 * may be called again for a job if the sweep fails or skips the job, and is not called for a job that was superseded
 * under its key or removed while it ran.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface JobRecoveryHandler {

    /**
     * Decides about one job.
     *
     * @param job the job as it is locked, with the interrupted attempt counted
     * @param worker the worker that died, why it is considered dead, and which worker recovers its jobs
     */
    RecoveryDecision decide(Job job, DeadWorker worker);
}
