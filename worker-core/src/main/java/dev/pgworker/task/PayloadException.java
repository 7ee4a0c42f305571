package dev.pgworker.task;

import org.jspecify.annotations.Nullable;

/**
 * Thrown if a job's payload does not fit the handler's type or is invalid, or if a result cannot be written as JSON. The
 * message names the task, the type, the path of the field at fault (such as {@code $.items[2].price}) and the reason; the
 * cause, if any, is the exception of Jackson or of the validator.
 *
 * @since 0.1.0
 */
public final class PayloadException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    private final boolean invalid;

    PayloadException(String message, @Nullable Throwable cause) {
        this(message, cause, false);
    }

    PayloadException(String message, @Nullable Throwable cause, boolean invalid) {
        super(message, cause);
        this.invalid = invalid;
    }

    /** Returns whether a {@link PayloadValidator} has refused the payload, so that the job fails permanently. */
    public boolean isInvalid() {
        return invalid;
    }
}
