package dev.pgworker.task;

import org.jspecify.annotations.Nullable;

/**
 * A job's payload that does not fit the type its handler asks for. The message names job, task, type, the path of the
 * field that does not fit (such as {@code $.items[2].price}) and the reason; the cause, if any, is Jackson's exception.
 *
 * @since 0.1.0
 */
public final class PayloadException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    PayloadException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
