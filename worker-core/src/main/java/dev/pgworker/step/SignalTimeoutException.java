package dev.pgworker.step;

/**
 * Thrown by {@link JobSteps#await} if no signal has come in time. The job does not wait for this signal again: every later attempt gets the same
 * exception.
 *
 * @since 0.1.0
 */
public final class SignalTimeoutException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    private final String signal;

    /** Creates one for the signal with the given name. */
    public SignalTimeoutException(String signal) {
        super("Signal \"" + signal + "\" has not come in time");
        this.signal = signal;
    }

    /** Returns the name of the signal. */
    public String signal() {
        return signal;
    }
}
