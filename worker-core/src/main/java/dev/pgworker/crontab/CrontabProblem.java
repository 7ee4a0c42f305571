package dev.pgworker.crontab;

/**
 * One mistake in a crontab.
 *
 * @param source the name of the text, such as a property or a file, or a method or builder
 * @param line the line in the text, from 1; 0 if the source is no text but something that stands in code
 * @param column where in the line the mistake stands, from 1; 0 if there is no line
 * @param text the offending text
 * @param message what is wrong and what is allowed
 * @since 0.1.0
 */
public record CrontabProblem(String source, int line, int column, String text, String message) {

    @Override
    public String toString() {
        return source + (line == 0 ? "" : ":" + line + ":" + column) + ": \"" + text + "\": " + message;
    }
}
