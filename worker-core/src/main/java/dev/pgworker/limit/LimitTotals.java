package dev.pgworker.limit;

/**
 * How much of a limit is used by all values of its field together.
 *
 * @param name the limit's name
 * @param waiting number of jobs that wait for it, or will when they are due, counted up to 10,000
 * @param used number of jobs that run, for a limit of concurrency; 0 for others
 * @since 0.1.0
 */
public record LimitTotals(String name, long waiting, long used) {}
