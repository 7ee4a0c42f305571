package dev.pgworker.task;

/**
 * Ends a handler whose job has been cancelled; see {@link JobContext#throwIfCancelled}.
 *
 * @since 0.1.0
 */
public class JobCancelledException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    /** Creates an exception. */
    public JobCancelledException() {
        super("The job has been cancelled");
    }
}
