package dev.pgworker.internal.lifecycle;

import java.util.List;

/**
 * Wakes what waits for something to do. A part that makes work possible signals it here, on any thread, and knows
 * nothing of what is woken: each method returns at once and holds no lock. Nothing is woken before {@link #wakes} is
 * called.
 */
public final class WorkSignal {

    private volatile List<Receiver> receivers = List.of();

    /** What the signal wakes. Each method may be called from any thread, and returns at once. */
    public interface Receiver {

        /** Jobs may be due that the last claim did not see. */
        default void jobsMayBeDue() {}

        /** There is room for jobs, or jobs are to be given back. */
        default void capacityFreed() {}

        /** Jobs that wait for limits may start. */
        default void limitsMayAllow() {}

        /** Whether the worker may claim has changed: the lease has begun or was revoked, or history, pauses or limits have become known. */
        default void leaseChanged() {
            capacityFreed();
        }

        /** The tasks whose jobs are to be claimed in the ordinary way may be others. */
        default void tasksMayHaveChanged() {}

        /** What the worker holds by the database may not be what the worker knows. */
        default void holdingsInDoubt() {}
    }

    /** Sets what to wake. Call once, before any service starts. */
    public void wakes(Receiver... all) {
        receivers = List.of(all);
    }

    /** As {@link Receiver#jobsMayBeDue}. */
    public void jobsMayBeDue() {
        receivers.forEach(Receiver::jobsMayBeDue);
    }

    /** As {@link Receiver#capacityFreed}. */
    public void capacityFreed() {
        receivers.forEach(Receiver::capacityFreed);
    }

    /** As {@link Receiver#limitsMayAllow}. */
    public void limitsMayAllow() {
        receivers.forEach(Receiver::limitsMayAllow);
    }

    /** As {@link Receiver#leaseChanged}. */
    public void leaseChanged() {
        receivers.forEach(Receiver::leaseChanged);
    }

    /** As {@link Receiver#tasksMayHaveChanged}. */
    public void tasksMayHaveChanged() {
        receivers.forEach(Receiver::tasksMayHaveChanged);
    }

    /** As {@link Receiver#holdingsInDoubt}. */
    public void holdingsInDoubt() {
        receivers.forEach(Receiver::holdingsInDoubt);
    }
}
