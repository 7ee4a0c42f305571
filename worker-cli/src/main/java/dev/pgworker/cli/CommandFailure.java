package dev.pgworker.cli;

/** A command cannot be done, for a reason that the user is told in a line. */
final class CommandFailure extends RuntimeException {

    private static final long serialVersionUID = 1L;

    private final int exitStatus;

    CommandFailure(int exitStatus, String message) {
        super(message);
        this.exitStatus = exitStatus;
    }

    CommandFailure(int exitStatus, String message, Throwable cause) {
        super(message, cause);
        this.exitStatus = exitStatus;
    }

    /** Returns the failure for an option or argument that is wrong. */
    static CommandFailure usage(String message) {
        return new CommandFailure(ExitStatus.USAGE, message);
    }

    int exitStatus() {
        return exitStatus;
    }
}
