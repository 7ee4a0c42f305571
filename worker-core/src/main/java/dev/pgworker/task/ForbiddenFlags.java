package dev.pgworker.task;

import java.util.Collection;

/**
 * Says which jobs not to run at the moment: those that have one of the flags. Asked on the worker's threads before every
 * claim, so answer at once, from a cache if need be. While it throws, the worker claims nothing.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface ForbiddenFlags {

    /** Returns the flags whose jobs are passed over; empty for none. */
    Collection<String> current();
}
