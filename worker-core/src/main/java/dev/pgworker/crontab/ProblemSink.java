package dev.pgworker.crontab;

/** Takes the mistakes of one line. */
@FunctionalInterface
interface ProblemSink {

    /** Notes a mistake at a column that counts from 0. */
    void add(int column, String text, String message);
}
