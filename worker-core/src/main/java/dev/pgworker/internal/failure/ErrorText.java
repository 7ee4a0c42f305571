package dev.pgworker.internal.failure;

import java.io.PrintWriter;
import java.io.StringWriter;

import org.jspecify.annotations.Nullable;

/**
 * Turns an exception into what {@code last_error} holds: class, message and stack trace, at most 10,000 characters. Exceptions
 * are user code, too: their methods may return null, throw, or overflow the stack.
 */
public final class ErrorText {

    public static final int LIMIT = 10_000;

    /** A message may take this much, so that a huge one leaves room for the stack trace. */
    public static final int MESSAGE_LIMIT = 4_000;

    private ErrorText() {}

    /** Returns the text of an exception, fit for PostgreSQL. */
    public static String of(Throwable error) {
        String text;
        try {
            text = read(error);
        } catch (Throwable e) {
            text = withoutMessage(error, e);
        }
        return storable(text.length() > LIMIT ? text.substring(0, LIMIT) : text);
    }

    private static String read(Throwable error) {
        String headline = error.toString();
        if (headline == null) {
            throw new NullPointerException();
        }
        StringWriter trace = new StringWriter();
        error.printStackTrace(new PrintWriter(trace));
        String text = trace.toString();
        if (text.isBlank()) {
            return headline;
        }
        if (headline.length() > MESSAGE_LIMIT && text.startsWith(headline)) {
            return headline.substring(0, MESSAGE_LIMIT) + " ... (" + headline.length() + " characters)"
                    + text.substring(headline.length());
        }
        return text;
    }

    private static String withoutMessage(Throwable error, Throwable why) {
        return error.getClass().getName() + " (whose message cannot be read: "
                + why.getClass().getName() + ")";
    }

    /** Returns class and message of an exception in one line. Never throws. */
    public static String headline(Throwable error) {
        try {
            String headline = error.toString().replace('\n', ' ');
            return headline.length() > MESSAGE_LIMIT ? headline.substring(0, MESSAGE_LIMIT) + " ..." : headline;
        } catch (Throwable e) {
            return withoutMessage(error, e);
        }
    }

    /** Returns an exception that can be logged: the given one, unless a logger could not read it. Never throws. */
    public static Throwable loggable(Throwable error) {
        try {
            Throwable current = error;
            for (int depth = 0; current != null && depth < LIMIT; depth++) {
                if (!isReadable(current)) {
                    return new UnreadableError(of(error));
                }
                current = current.getCause();
            }
            return error;
        } catch (Throwable e) {
            return new UnreadableError(withoutMessage(error, e));
        }
    }

    private static boolean isReadable(Throwable error) {
        String message = error.getMessage();
        String localized = error.getLocalizedMessage();
        return error.toString() != null
                && error.getStackTrace() != null
                && (message == null || message.length() <= LIMIT)
                && (localized == null || localized.length() <= LIMIT);
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
    private static final class UnreadableError extends RuntimeException {

        private static final long serialVersionUID = 1L;

        UnreadableError(@Nullable String text) {
            super(text, null, false, false);
        }
    }
}
