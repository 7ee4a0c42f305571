package dev.pgworker.crontab;

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

    @Override
    public String toString() {
        return source + (line == 0 ? "" : ":" + line + ":" + column) + ": \"" + text + "\": " + message;
    }
}
