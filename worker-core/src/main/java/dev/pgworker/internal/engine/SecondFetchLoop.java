package dev.pgworker.internal.engine;

import java.sql.SQLException;
import java.time.Duration;

import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.BackgroundService;

/**
 * Claims half of the jobs, told by whether ids are odd, on {@code worker-fetch-2} while {@link FetchLoop}, which claims the other
 * half then, has more to do than one connection can: a server writes the claims of two connections on two processors, and one of them works
 * while the other one waits for its commit or for this worker.
 *
 * <p>It ends as soon as it finds less than it has room for, something goes wrong, or a moment has passed, after which both
 * chains begin at the lower one of their places.
 */
public final class SecondFetchLoop extends BackgroundService {

    private static final Duration LONGEST = Duration.ofSeconds(1);

    /** A safety net: the room is told of as well. */
    private static final Duration ROOM_CHECK = Duration.ofMillis(20);

    private final Fetcher fetcher;
    private final LocalQueue localQueue;
    private final Ownership ownership;
    private final Runnable onJoin;

    /** Whether it has nothing to do and can begin at once. */
    private volatile boolean waiting;

    /**
     * Creates the loop.
     *
     * @param onJoin called on its thread when the jobs are split no longer
     */
    public SecondFetchLoop(
            Fetcher fetcher, LocalQueue localQueue, Ownership ownership, Runnable onJoin, Outage outage) {
        super("worker-fetch-2", true, outage);
        this.fetcher = fetcher;
        this.localQueue = localQueue;
        this.ownership = ownership;
        this.onJoin = onJoin;
    }

    /** Says that the jobs have been split, or that there is room. May be called from any thread. */
    public void begin() {
        if (fetcher.isSplit()) {
            wake();
        }
    }

    /** Returns whether it can begin at once. May be called from any thread. */
    boolean isWaiting() {
        return waiting;
    }

    @Override
    protected void step() throws SQLException, InterruptedException {
        if (!fetcher.isSplit()) {
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
            fetcher.join();
            onJoin.run();
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
