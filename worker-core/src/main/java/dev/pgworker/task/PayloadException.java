package dev.pgworker.task;

import org.jspecify.annotations.Nullable;

/**
 * Thrown if a job's payload does not fit the type that its handler requires, or if a result cannot be written as JSON. The
 * message names the task, the type, the path of the field at fault (such as {@code $.items[2].price}) and the reason; the
 * cause, if any, is Jackson's exception.
 *
 * @since 0.1.0
 */
public final class PayloadException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    PayloadException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
