package dev.pgworker.crontab;

/**
 * One mistake in a crontab's text.
 *
 * @param source the name of the text, such as a property or a file
 * @param line the line in the text, from 1
 * @param column where in the line the mistake stands, from 1
 * @param text the offending text
 * @param message what is wrong and what is allowed
 */
public record CrontabProblem(String source, int line, int column, String text, String message) {

    @Override
    public String toString() {
        return source + ":" + line + ":" + column + ": \"" + text + "\": " + message;
    }
}
