package dev.pgworker.internal.engine.claim;

import java.sql.SQLException;
import java.time.Duration;

import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.engine.run.Ownership;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.lifecycle.WorkSignal;

/**
 * Claims half of the jobs, told by whether ids are odd, on {@code worker-fetch-2} while {@link FetchLoop}, which claims the other
 * half then, has more to do than one connection can: a server writes the claims of two connections on two processors, and one of them works
 * while the other one waits for its commit or for this worker.
 *
 * <p>It ends as soon as it finds less than it has room for, something goes wrong, or a moment has passed, after which both
 * chains begin at the lower one of their places.
 */
public final class SecondFetchLoop extends BackgroundService implements WorkSignal.Receiver {

    private static final Duration LONGEST = Duration.ofSeconds(1);

    /** A safety net: the room is told of as well. */
    private static final Duration ROOM_CHECK = Duration.ofMillis(20);

    private final WorkSignal signal;
    private final Fetcher fetcher;
    private final ClaimPlanner planner;
    private final LocalQueue localQueue;
    private final Ownership ownership;

    /** Whether it has nothing to do and can begin at once. */
    private volatile boolean waiting;

    /** Creates the loop for one worker. */
    public SecondFetchLoop(
            WorkerContext context, Fetcher fetcher, ClaimPlanner planner, LocalQueue localQueue, Ownership ownership) {
        super("worker-fetch-2", true, context.outage());
        this.signal = context.signal();
        this.fetcher = fetcher;
        this.planner = planner;
        this.localQueue = localQueue;
        this.ownership = ownership;
    }

    /** Says that the jobs have been split. May be called from any thread. */
    void begin() {
        if (planner.isSplit()) {
            wake();
        }
    }

    @Override
    public void capacityFreed() {
        begin();
    }

    /** Returns whether it can begin at once. May be called from any thread. */
    boolean isWaiting() {
        return waiting;
    }

    @Override
    protected void step() throws SQLException, InterruptedException {
        if (!planner.isSplit()) {
            waiting = true;
            try {
                pause(Long.MAX_VALUE);
            } finally {
                waiting = false;
            }
            return;
        }
        try {
            long end = System.nanoTime() + LONGEST.toNanos();
            while (!isStopping() && ownership.mayClaim() && System.nanoTime() - end < 0 && mayGoOn()) {
                progress();
            }
        } finally {
            planner.join();
            signal.claimsMayFindMore();
        }
    }

    private boolean mayGoOn() throws SQLException, InterruptedException {
        int room = localQueue.reserve(2);
        if (room == 0) {
            pause(ROOM_CHECK.toNanos());
            return true;
        }
        try {
            return fetcher.fetchOdd(room);
        } finally {
            localQueue.unreserve(room);
        }
    }
}
