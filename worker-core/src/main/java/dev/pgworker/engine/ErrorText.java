package dev.pgworker.engine;

import java.io.PrintWriter;
import java.io.StringWriter;

/** Turns an exception into what {@code last_error} holds: class, message and stack trace, at most 10,000 characters. */
final class ErrorText {

    static final int LIMIT = 10_000;

    /** A message may take this much, so that a huge one leaves room for the stack trace. */
    static final int MESSAGE_LIMIT = 4_000;

    private ErrorText() {}

    static String of(Throwable error) {
        StringWriter trace = new StringWriter();
        String headline;
        try {
            headline = error.toString();
            error.printStackTrace(new PrintWriter(trace));
        } catch (RuntimeException e) {
            return error.getClass().getName() + " (whose message cannot be read: "
                    + e.getClass().getName() + ")";
        }
        String text = trace.toString();
        if (headline.length() > MESSAGE_LIMIT && text.startsWith(headline)) {
            text = headline.substring(0, MESSAGE_LIMIT) + " ... (" + headline.length() + " characters)"
                    + text.substring(headline.length());
        }
        return storable(text.length() > LIMIT ? text.substring(0, LIMIT) : text);
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
    static String ascii(String text) {
        return text.replaceAll("[^\\x09\\x0A\\x0D\\x20-\\x7E]", "?");
    }
}
