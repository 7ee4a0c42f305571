package dev.pgworker.internal.lifecycle;

import java.time.Duration;

/** A part of a worker that works by itself, until it is stopped. */
public interface Service {

    /** Returns the name that its thread has while it works, also used in messages. */
    String name();

    /** As {@link #stop}, but returns at once, so that several services can end at the same time. */
    void beginStop();

    /**
     * Ends the service: no step begins after this call, and one that waits is interrupted.
     *
     * @param limit how long to wait for the end of a step
     * @return whether it has ended; false is logged
     */
    boolean stop(Duration limit);

    /** Returns the time since a step last succeeded, or since the service was started if none has. */
    Duration sinceSuccess();

    /** Returns true if the service was started and will not work any more although it was not stopped. */
    boolean isDead();

    /**
     * Returns true if the service has been at one thing for longer than that, without waiting for the database and without
     * being stopped. Never waits.
     */
    boolean isStuck(Duration longerThan);
}
