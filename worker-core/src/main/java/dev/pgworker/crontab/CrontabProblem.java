package dev.pgworker.crontab;

import dev.pgworker.internal.argument.Arguments;

/**
 * An error in a crontab.
 *
 * @param source the name of the text, such as a property or a file, or a method or builder
 * @param line the line in the text, starting at 1; 0 if the source is not a text but code
 * @param column the column of the error in the line, starting at 1; 0 if there is no line
 * @param text the offending text
 * @param message what is wrong, and what is allowed
 * @since 0.1.0
 */
public record CrontabProblem(String source, int line, int column, String text, String message) {

    private static final int MOST_TEXT = 200;

    /** Checks that there is a text. */
    public CrontabProblem {
        Arguments.requireNonNull("text", text);
    }

    /** Returns all of it in one line; of a long text the beginning. */
    @Override
    public String toString() {
        String shown = text.length() > MOST_TEXT ? text.substring(0, MOST_TEXT) + "..." : text;
        return source + (line == 0 ? "" : ":" + line + ":" + column) + ": \"" + shown + "\": " + message;
    }
}
