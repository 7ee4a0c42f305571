package dev.pgworker.task;

import java.time.Duration;

import org.jspecify.annotations.Nullable;

/**
 * Reports that an attempt exceeded its handler's timeout.
 *
 * @since 0.1.0
 */
public final class JobTimeoutException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    /**
     * Creates the failure of an attempt.
     *
     * @param cause the exception that the handler threw when it was interrupted, or null if it did not respond or
     *     returned normally
     */
    public JobTimeoutException(Duration timeout, @Nullable Throwable cause) {
        super("The handler took longer than its timeout of " + timeout, cause);
    }
}
