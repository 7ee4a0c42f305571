package dev.pgworker.task;

import java.util.Collection;

/**
 * Determines which jobs a worker does not run at the moment: those that have one of the returned flags. Called on the
 * worker's threads before every claim, so implementations must return immediately, from a cache if necessary. While it
 * throws an exception, the worker claims no jobs.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface ForbiddenFlags {

    /** Returns the flags of the jobs to skip; empty for none. */
    Collection<String> current();
}
