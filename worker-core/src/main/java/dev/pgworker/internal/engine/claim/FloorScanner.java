package dev.pgworker.internal.engine.claim;

import java.sql.SQLException;

import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.floor.ClaimFloor;
import dev.pgworker.internal.engine.floor.QueueFloors;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.lifecycle.WorkSignal;

/** Looks on {@code worker-scan} for jobs that claims pass over because of the {@link ClaimFloor} or the {@link QueueFloors}. */
public final class FloorScanner extends BackgroundService implements WorkSignal.Receiver {

    private final ClaimPlanner planner;
    private final WorkSignal signal;

    /** Creates the service for one worker. */
    public FloorScanner(WorkerContext context, ClaimPlanner planner) {
        super("worker-scan", true, context.outage());
        this.planner = planner;
        this.signal = context.signal();
    }

    @Override
    public void scanWanted() {
        wake();
    }

    @Override
    protected void step() throws SQLException, InterruptedException {
        // A step without a scan would count as one that has succeeded.
        for (long wait = planner.nanosUntilScan(); wait > 0 && !isStopping(); wait = planner.nanosUntilScan()) {
            pause(wait);
        }
        if (!isStopping() && planner.isFloorScanDue() && planner.scanFloor()) {
            signal.claimsMayFindMore();
        }
        if (!isStopping() && planner.scanQueues()) {
            signal.claimsMayFindMore();
        }
    }
}
