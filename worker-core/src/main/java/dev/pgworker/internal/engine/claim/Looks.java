package dev.pgworker.internal.engine.claim;

import java.sql.SQLException;
import java.time.Duration;

import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.run.Ownership;
import dev.pgworker.internal.lifecycle.PeriodicService;

/**
 * Looks at all jobs for what nobody has announced, while that takes too long for the thread that claims: much is left of finished jobs
 * then. It takes a fiftieth of the time.
 */
public final class Looks extends PeriodicService {

    private static final int SHARE = 50;

    private final WorkerContext context;
    private final Claims claims;
    private final Ownership ownership;
    private final Duration interval;

    /** Creates the looks of one worker, the interval apart at least. */
    public Looks(WorkerContext context, Claims claims, Ownership ownership, Duration interval) {
        super("worker-scan", "look for jobs before the floors of claims", context.outage());
        this.context = context;
        this.claims = claims;
        this.ownership = ownership;
        this.interval = interval;
    }

    @Override
    protected Duration work() throws SQLException {
        if (!ownership.mayClaim() || claims.isLookCheap()) {
            return interval;
        }
        if (claims.lookAtAll().anyDue()) {
            context.signal().jobsMayBeDue();
        }
        Duration pause = claims.lookTook().multipliedBy(SHARE);
        return pause.compareTo(interval) < 0 ? interval : pause;
    }
}
