package dev.pgworker.benchmarks;

import java.util.List;
import java.util.Optional;

import org.jspecify.annotations.Nullable;

/** A job queue that takes part, as the runner sees it. */
interface Contender {

    String name();

    /** Returns how many processes work at the same time. */
    default int processes() {
        return 1;
    }

    /** Returns by what the number of jobs is divided, so that slow contenders take seconds and not minutes. */
    default int divisor() {
        return 1;
    }

    /** Returns whether jobs start without polling, so that latencies mean something. */
    default boolean wakes() {
        return true;
    }

    /** Returns whether it adds jobs differently from those before it in {@link Contenders#ALL}. */
    default boolean addsItsOwnWay() {
        return true;
    }

    /** Returns whether it starts with the next poll, so that its clock starts with its first job. */
    default boolean polls() {
        return false;
    }

    /** Returns whether it works on the tables of {@link GraphileTables}, which scenarios can fill with SQL. */
    default boolean onGraphileTables() {
        return false;
    }

    /** Returns whether it has named serial queues. */
    default boolean hasQueues() {
        return false;
    }

    /** Returns the SQL for the number after which jobs are counted as {@link #unfinished}. */
    default String mark() {
        return "select 0::bigint";
    }

    /** Returns the SQL that says whether there are unfinished jobs after the mark, its one parameter. */
    String unfinished();

    /** Returns why it cannot take part, or null if it can. */
    default @Nullable String missing(Options options) {
        return null;
    }

    /** Returns the command that starts a process, which then obeys {@link ContenderProcess}. */
    List<String> command(Options options, String jdbcUrl);

    /** Returns the JVM's side of it. */
    default Optional<JvmQueue.Factory> jvmQueue() {
        return Optional.empty();
    }
}
