package dev.pgworker.internal.engine.claim;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.WorkSignal;
import dev.pgworker.internal.store.TaskIds;

/**
 * The tasks whose jobs run in direct batches. What cannot be done so, because a row cannot be read or deleted for example, is
 * done in the ordinary way for a while, which isolates the job that is to blame. Thread-safe.
 */
public final class DirectTasks {

    private static final Logger log = WorkerLog.of(DirectTasks.class);

    /** One chain lets its server or its process wait; with more than two each has half a core at best. */
    public static final int CHAINS = 2;

    private static final Duration SUSPENSION = Duration.ofMinutes(1);

    private final Set<String> identifiers;

    /** By {@link System#nanoTime}; null if the jobs are not claimed in the ordinary way. */
    private volatile @Nullable Long suspendedUntil;

    /** Chains that wait for a handler that takes long. */
    private final AtomicInteger heldUp = new AtomicInteger();

    /** Told when others are to run the jobs, or no longer are. */
    private final WorkSignal signal;

    /** Creates the set of the tasks with these identifiers; it may be empty. */
    public DirectTasks(Set<String> identifiers, WorkSignal signal) {
        this.identifiers = identifiers;
        this.signal = signal;
    }

    public Set<String> identifiers() {
        return identifiers;
    }

    /** Notes that their ids have become known. */
    void learned() {
        if (!identifiers.isEmpty()) {
            signal.jobsMayBeDue();
        }
    }

    /** Has the jobs of these tasks claimed in the ordinary way for a while. */
    public void suspend(Throwable reason) {
        suspendedUntil = System.nanoTime() + SUSPENSION.toNanos();
        log.warn(
                "A direct batch failed; for {} s the jobs of {} are run like those of other tasks",
                SUSPENSION.toSeconds(),
                identifiers,
                reason);
        signal.tasksMayHaveChanged();
    }

    /**
     * Notes that another chain waits for a handler that takes long. While all do, jobs are claimed in the ordinary way.
     */
    public void isHeldUp() {
        if (heldUp.incrementAndGet() == CHAINS) {
            signal.tasksMayHaveChanged();
        }
    }

    /** Notes that the handler has ended for which a chain has waited. */
    public void goesOn() {
        if (heldUp.getAndDecrement() == CHAINS) {
            signal.tasksMayHaveChanged();
        }
    }

    /** Returns whether the jobs are claimed in the ordinary way at the moment. */
    public boolean isSuspended() {
        Long until = suspendedUntil;
        return heldUp.get() >= CHAINS || (until != null && System.nanoTime() - until < 0);
    }

    /** Returns what ordinary claims look for: of direct tasks only what is in queues, which may hold jobs of other tasks, too. */
    TaskIds ordinary(TaskIds served) {
        return isSuspended() ? served : new TaskIds(served.identifiers(), identifiers);
    }
}
