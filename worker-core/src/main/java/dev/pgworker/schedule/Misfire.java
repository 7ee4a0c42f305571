package dev.pgworker.schedule;

/**
 * What happens to executions that were missed because no worker ran or the database was not available. An execution is
 * missed if the next one is due as well, or if it is more than a minute late.
 *
 * @since 0.1.0
 */
public enum Misfire {

    /** They do not take place; the next one does in its time. */
    SKIP,

    /** The last of them takes place, at once, for all. */
    RUN_ONCE,

    /** All of them take place, in order, as far back as the schedule's backfill period goes. */
    RUN_ALL
}
