package dev.pgworker.internal.engine.claim;

/** Which flags are forbidden cannot be found out at the moment, so that no job may be claimed. */
public final class ForbiddenFlagsException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    ForbiddenFlagsException(String message, Throwable cause) {
        super(message, cause);
    }
}
