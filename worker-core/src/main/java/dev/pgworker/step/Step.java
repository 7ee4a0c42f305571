package dev.pgworker.step;

/**
 * A step of a job, as the work that runs it sees it.
 *
 * @since 0.1.0
 */
public interface Step {

    /** Returns the step's name within its job; with a number if the attempt has used the name before, such as {@code "charge#2"}. */
    String name();

    /**
     * Returns a key by which another system can recognize a repeated request. It is the same in every attempt of the job and on
     * every worker, and another one for each step and each job, also for a job that is added again under its key with another
     * payload. Has at most 180 characters, all of them ASCII if those of the name are.
     */
    String idempotencyKey();
}
