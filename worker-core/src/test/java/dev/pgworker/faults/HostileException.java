package dev.pgworker.faults;

import java.io.PrintWriter;
import java.util.SplittableRandom;

/** An exception that does harm to whoever looks at it. */
@SuppressWarnings({"OverrideThrowableToString", "ToStringReturnsNull"}) // that is what hostile ones do
final class HostileException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    private enum Way {
        NULL_TEXT,
        NULL_MESSAGE,
        THROWS,
        OVERFLOWS,
        ERROR,
        OWN_CAUSE,
        UNPRINTABLE,
        HUGE,
        BINARY
    }

    private final Way way;

    private HostileException(Way way) {
        super("Hostile: " + way);
        this.way = way;
    }

    static HostileException create(SplittableRandom random) {
        return new HostileException(Way.values()[random.nextInt(Way.values().length)]);
    }

    @Override
    public String getMessage() {
        return switch (way) {
            case NULL_MESSAGE -> null;
            case THROWS -> throw new IllegalStateException("On purpose: no message");
            case OVERFLOWS -> getMessage() + "!";
            case ERROR -> throw new OutOfMemoryError("On purpose: no memory for the message");
            case HUGE -> "x".repeat(2_000_000);
            case BINARY -> "\0 \uD800 \uFFFF";
            default -> super.getMessage();
        };
    }

    @Override
    public String getLocalizedMessage() {
        return getMessage();
    }

    @Override
    public String toString() {
        return way == Way.NULL_TEXT ? null : super.toString();
    }

    @Override
    @SuppressWarnings("UnsynchronizedOverridesSynchronized")
    public Throwable getCause() {
        return way == Way.OWN_CAUSE ? this : null;
    }

    @Override
    public void printStackTrace(PrintWriter writer) {
        if (way == Way.UNPRINTABLE) {
            throw new LinkageError("On purpose: no stack trace");
        }
        super.printStackTrace(writer);
    }
}
