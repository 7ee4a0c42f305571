package dev.pgworker.task;

import dev.pgworker.job.DeadWorker;
import dev.pgworker.job.Job;

/**
 * Decides what becomes of a job whose worker has died. All handlers of a worker are asked in order; the first that
 * decides otherwise than {@link RecoveryDecision#useDefault()} settles it.
 *
 * <p>Called by the sweep, one job after the other, before any row of a job is locked, but while other sweeps of the
 * database wait: do little. What it throws is logged, and the job is recovered as usual. It may be asked again about
 * a job if the sweep fails or skips the job, and is not asked about a job that was superseded under its key or removed
 * while it ran.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface JobRecoveryHandler {

    /**
     * Decides about one job.
     *
     * @param job the job as it is locked, the interrupted attempt counted
     * @param worker the worker that died, why it is taken for dead, and who recovers its jobs
     */
    RecoveryDecision decide(Job job, DeadWorker worker);
}
