package dev.pgworker.internal.engine;

import java.sql.SQLException;

import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.BackgroundService;

/** Looks on {@code worker-look} for jobs that claims pass over because of the {@link ClaimFloor} or the {@link QueueFloors}. */
public final class FloorScanner extends BackgroundService {

    private final ClaimFloor floor;
    private final QueueFloors queueFloors;
    private final Fetcher fetcher;
    private final Runnable onFound;

    /**
     * Creates the service.
     *
     * @param onFound called on its thread when there are such jobs
     */
    public FloorScanner(ClaimFloor floor, QueueFloors queueFloors, Fetcher fetcher, Runnable onFound, Outage outage) {
        super("worker-look", true, outage);
        this.floor = floor;
        this.queueFloors = queueFloors;
        this.fetcher = fetcher;
        this.onFound = onFound;
        floor.whenLookWanted(this::wake);
        queueFloors.whenLookWanted(this::wake);
    }

    @Override
    protected void step() throws SQLException, InterruptedException {
        // A step without a look would count as one that has succeeded.
        for (long wait = nanosUntilLook(); wait > 0 && !isStopping(); wait = nanosUntilLook()) {
            pause(wait);
        }
        if (!isStopping() && floor.nanosUntilLook() == 0 && fetcher.lookBelow()) {
            onFound.run();
        }
        if (!isStopping() && fetcher.lookAtQueues()) {
            onFound.run();
        }
    }

    private long nanosUntilLook() {
        return Math.min(floor.nanosUntilLook(), queueFloors.nanosUntilLook());
    }
}
