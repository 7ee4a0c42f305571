package dev.pgworker.internal.pattern;

/** Takes the mistakes of one line. */
@FunctionalInterface
public interface ProblemSink {

    /** Notes a mistake at a column that counts from 0. */
    void add(int column, String text, String message);
}
