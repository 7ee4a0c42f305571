package dev.pgworker.internal.failure;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;

import org.jspecify.annotations.Nullable;

/**
 * Turns an exception into what {@code last_error} holds, as {@link ErrorTrace} shows it, at most 10,000 characters. Exceptions are
 * user code, too: their methods may return null, throw, or overflow the stack.
 */
public final class ErrorText {

    public static final int LIMIT = 10_000;

    /** Loggers go from cause to cause on the stack. */
    private static final int MOST_LOGGED = 100;

    private ErrorText() {}

    /** Returns the text of an exception, fit for PostgreSQL. Never throws. */
    public static String of(Throwable error) {
        String text;
        try {
            text = ErrorTrace.of(error);
        } catch (Throwable e) {
            text = Headline.unreadable(error, e);
        }
        return storable(text.length() > LIMIT ? text.substring(0, LIMIT) : text);
    }

    /** Returns class and message of an exception in one line. Never throws. */
    public static String headline(Throwable error) {
        return Headline.of(error, Headline.LIMIT).replaceAll("\\R", " ");
    }

    /**
     * Returns an exception that can be logged: the given one, unless a logger could not read it, or would write a text without end.
     * Never throws.
     */
    public static Throwable loggable(Throwable error) {
        try {
            Set<Throwable> seen = Collections.newSetFromMap(new IdentityHashMap<>());
            return isReadable(error, seen, false) ? error : new ErrorAsText(of(error));
        } catch (Throwable e) {
            return new ErrorAsText(Headline.unreadable(error, e));
        }
    }

    /**
     * Returns what {@link WorkerLog} shows of an exception: the given one, unless it is not {@link #loggable}, or a line of its text
     * might be taken for one of the log. Then its text, with all lines but the first indented.
     */
    static Throwable inLog(Throwable error) {
        try {
            Set<Throwable> seen = Collections.newSetFromMap(new IdentityHashMap<>());
            if (isReadable(error, seen, true)) {
                return error;
            }
            String text = error instanceof ErrorAsText ? String.valueOf(error.getMessage()) : of(error);
            return new ErrorAsText(LogText.indented(text));
        } catch (Throwable e) {
            return new ErrorAsText(Headline.unreadable(error, e));
        }
    }

    /** Returns whether an exception is, with its causes and what it suppresses, unless they are among those that were seen. */
    private static boolean isReadable(Throwable error, Set<Throwable> seen, boolean inLog) {
        for (Throwable current = error; current != null && seen.add(current); current = current.getCause()) {
            String message = current.getMessage();
            String localized = current.getLocalizedMessage();
            if (seen.size() > MOST_LOGGED
                    || current.toString() == null
                    || (inLog && !isIndented(current))
                    || current.getStackTrace() == null
                    || (message != null && message.length() > LIMIT)
                    || (localized != null && localized.length() > LIMIT)) {
                return false;
            }
            for (Throwable suppressed : current.getSuppressed()) {
                if (!isReadable(suppressed, seen, inLog)) {
                    return false;
                }
            }
        }
        return true;
    }

    private static boolean isIndented(Throwable error) {
        return LogText.isIndented(error.getMessage())
                && LogText.isIndented(error.getLocalizedMessage())
                && LogText.isIndented(error.toString());
    }

    /** Replaces what PostgreSQL's text type cannot hold: NUL and lone surrogates. */
    private static String storable(String text) {
        StringBuilder result = new StringBuilder(text.length());
        text.codePoints().forEach(c -> {
            boolean loneSurrogate = c >= Character.MIN_SURROGATE && c <= Character.MAX_SURROGATE;
            result.appendCodePoint(c == 0 || loneSurrogate ? '\uFFFD' : c);
        });
        return result.toString().stripTrailing();
    }

    /** Reduces a text to ASCII for a database whose encoding cannot hold more. */
    public static String ascii(String text) {
        return text.replaceAll("[^\\x09\\x0A\\x0D\\x20-\\x7E]", "?");
    }

    /** Takes the place of an exception in the log. */
    private static final class ErrorAsText extends RuntimeException {

        private static final long serialVersionUID = 1L;

        ErrorAsText(@Nullable String text) {
            super(text, null, false, false);
        }
    }
}
