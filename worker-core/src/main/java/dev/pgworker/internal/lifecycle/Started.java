package dev.pgworker.internal.lifecycle;

import java.time.Duration;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;

import com.google.errorprone.annotations.concurrent.GuardedBy;

/**
 * Whether a run of a worker counts as started. A start returns at once, and the worker's threads do the rest: each
 * notes here when its part is done for the first time. All that wait for the start, or show whether it is over, ask
 * here and nowhere else. Thread-safe.
 */
public final class Started {

    /** What a start has to do. */
    public enum Part {
        /** The worker is registered. */
        REGISTRATION("the worker is not registered yet"),
        /** Notifications arrive. */
        LISTENER("the worker does not listen for notifications yet"),
        /** It is known what may be claimed: history, pauses and limits. */
        CLAIMS("the worker does not look for jobs yet"),
        /** All items of the crontab are registered. */
        CRONTAB("the crontab is not registered yet"),
        /** The schedules that the application declares are in the database. */
        SCHEDULES("declared schedules are not in the database yet"),
        /** The limits that the application declares are in the database. */
        LIMITS("declared limits are not in the database yet");

        private final String undone;

        Part(String undone) {
            this.undone = undone;
        }
    }

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private final BooleanSupplier hopeless;

    @GuardedBy("lock") private final Set<Part> left = EnumSet.noneOf(Part.class);

    @GuardedBy("lock") private boolean ended;

    /**
     * Creates one for a run that has not started.
     *
     * @param hopeless returns whether waiting is useless at present, because the database cannot be used
     */
    public Started(BooleanSupplier hopeless) {
        this.hopeless = hopeless;
    }

    /** Notes that the start includes these parts. Call before any service starts. */
    public void expect(Part... parts) {
        lock.lock();
        try {
            left.addAll(Arrays.asList(parts));
        } finally {
            lock.unlock();
        }
    }

    /** Notes that a part is done. */
    public void done(Part part) {
        lock.lock();
        try {
            left.remove(part);
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** Notes that the database cannot be used, so that no thread continues waiting. */
    public void reconsider() {
        lock.lock();
        try {
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** Notes that the run ends. */
    public void end() {
        lock.lock();
        try {
            ended = true;
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** Returns what is not done yet, each in a sentence without its full stop. */
    public List<String> undone() {
        lock.lock();
        try {
            return left.stream().map(part -> part.undone).toList();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Waits until all parts are done, the run ends, or the database cannot be used.
     *
     * @param limit how long to wait at most
     * @return whether all parts are done
     */
    public boolean await(Duration limit) throws InterruptedException {
        long nanos = TimeUnit.NANOSECONDS.convert(limit);
        lock.lockInterruptibly();
        try {
            while (!left.isEmpty() && !ended && !hopeless.getAsBoolean() && nanos > 0) {
                nanos = changed.awaitNanos(nanos);
            }
            return left.isEmpty();
        } finally {
            lock.unlock();
        }
    }
}
