package dev.pgworker.benchmarks;

/** Something to measure. */
interface Scenario {

    /** Says what the figures are, for the head of the table. */
    String title(Options options);

    /** Returns whether it makes sense for the contender. */
    boolean suits(Contender contender);

    /** Measures one contender once. */
    void run(Contender contender, Options options, Server server, Report report) throws Exception;

    /** Adds to the report what needs the figures of all runs. */
    default void finish(Report report) {}
}
