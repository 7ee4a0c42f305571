package dev.pgworker.internal.engine.claim;

import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicLong;

import com.google.errorprone.annotations.concurrent.GuardedBy;

import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.lifecycle.WorkSignal;

/**
 * Numbers the statements that may claim jobs, and counts the doubts: one arises when such a statement ends in an unknown way, so
 * that the database may hold jobs for this worker that it does not know. The {@code Reconciler} settles doubts. Safe for use by
 * many threads.
 *
 * <p>A job that is held but not known may be on its way here: what is still unknown when all statements have ended that had
 * begun before a look was over will never be known.
 */
public final class ClaimTracker {

    private final WorkSignal signal;

    @GuardedBy("inFlight") private final TreeSet<Long> inFlight = new TreeSet<>();

    @GuardedBy("inFlight") private long lastBegun;

    private final AtomicLong doubts = new AtomicLong();

    private volatile long settledDoubts;

    /** Creates a tracker without doubts. */
    public ClaimTracker(WorkSignal signal) {
        this.signal = signal;
    }

    /** A statement that may claim jobs, and what takes them into the local queue. */
    @FunctionalInterface
    public interface ClaimingStatement<T, E extends Exception> {
        T run() throws E;
    }

    /** Runs a statement that may claim jobs on the calling thread; if its end is unknown, that is a doubt. */
    public <T, E extends Exception> T during(ClaimingStatement<T, E> statement) throws E {
        long number = begin();
        try {
            return statement.run();
        } catch (Throwable e) {
            if (!isUndone(e)) {
                doubt();
            }
            throw e;
        } finally {
            synchronized (inFlight) {
                inFlight.remove(number);
            }
        }
    }

    /** Only the server can report that, not what a driver or a pool throws after it has answered. */
    private static boolean isUndone(Throwable e) {
        DatabaseFailure kind = DatabaseFailure.of(e);
        return (kind == DatabaseFailure.CONFLICT || kind == DatabaseFailure.CANCELLED) && DatabaseFailure.isAnswer(e);
    }

    private long begin() {
        synchronized (inFlight) {
            lastBegun++;
            inFlight.add(lastBegun);
            return lastBegun;
        }
    }

    /** Returns the number of the statement that was the last to begin. */
    public long lastBegun() {
        synchronized (inFlight) {
            return lastBegun;
        }
    }

    /** Returns whether all statements up to that number have ended. */
    public boolean haveEnded(long upTo) {
        synchronized (inFlight) {
            return inFlight.isEmpty() || inFlight.first() > upTo;
        }
    }

    /** Asks for a look, because what this worker holds by the database may not be what it knows of. */
    public void doubt() {
        doubts.incrementAndGet();
        signal.holdingsInDoubt();
    }

    /** Returns how many doubts there have been: one that arises during a look is not settled by it. */
    public long doubts() {
        return doubts.get();
    }

    /** Takes note that a look has settled so many doubts. */
    public void settled(long upTo) {
        settledDoubts = upTo;
    }

    /** Returns true if a statement has not ended, or has ended in an unknown way and no look has followed. */
    public boolean isInDoubt() {
        return settledDoubts != doubts.get() || !haveEnded(lastBegun());
    }
}
