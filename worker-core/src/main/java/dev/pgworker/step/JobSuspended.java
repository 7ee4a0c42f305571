package dev.pgworker.step;

/**
 * Ends an attempt whose job waits for a signal or a time. It is thrown by {@link JobSteps#await} and {@link
 * JobSteps#sleep}, and is no failure: let it pass. An error, so that {@code catch (Exception e)} does not stop it. A
 * handler that catches it all the same is named in the log; its job waits nevertheless, and each further use of its
 * steps in this attempt throws it again.
 *
 * @since 0.1.0
 */
public final class JobSuspended extends Error {

    private static final long serialVersionUID = 1L;

    /** Creates one. Only the worker throws it. */
    public JobSuspended(String message) {
        super(message, null, false, false);
    }
}
