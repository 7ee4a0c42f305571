package dev.pgworker.internal.engine.queue;

import java.sql.SQLException;
import java.time.Duration;
import java.util.Collection;
import java.util.HashSet;
import java.util.Set;

import com.google.errorprone.annotations.concurrent.GuardedBy;

/**
 * The queues that this worker has freed without waking others, because it claims their next jobs itself. Those that it has not
 * claimed when it has nothing else to do may have jobs that others run: then these are woken, a few times a second at most. Thread-safe.
 */
public final class FreedQueues {

    private static final long PAUSE_NANOS = Duration.ofMillis(250).toNanos();

    /** More need not be known one by one. */
    private static final int MOST = 10_000;

    private final Wake wake;

    @GuardedBy("this") private final Set<Integer> queues = new HashSet<>();

    @GuardedBy("this") private long toldAt = System.nanoTime() - PAUSE_NANOS;

    /** Wakes other workers. */
    @FunctionalInterface
    public interface Wake {
        void others() throws SQLException;
    }

    public FreedQueues(Wake wake) {
        this.wake = wake;
    }

    /** Takes note of queues that have been freed. */
    public synchronized void add(Collection<Integer> ids) {
        if (queues.size() < MOST) {
            queues.addAll(ids);
        }
    }

    /** Takes note of a queue that this worker has claimed. */
    synchronized void claimed(int id) {
        queues.remove(id);
    }

    /** Wakes others if there is a reason, and returns after how long to call this again. */
    public long tell() throws SQLException {
        synchronized (this) {
            if (queues.isEmpty()) {
                return Long.MAX_VALUE;
            }
            long left = PAUSE_NANOS - (System.nanoTime() - toldAt);
            if (left > 0) {
                return left;
            }
            queues.clear();
            toldAt = System.nanoTime();
        }
        wake.others();
        return Long.MAX_VALUE;
    }
}
