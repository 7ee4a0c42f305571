package dev.pgworker.internal.engine.claim;

import java.sql.SQLException;
import java.time.Duration;

import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.run.Ownership;
import dev.pgworker.internal.lifecycle.PeriodicService;

/**
 * Looks at all jobs for what nobody has announced, while the thread that claims does not, because it has other things to do or a look takes
 * long: much is left of finished jobs then. It takes a fiftieth of the time.
 */
public final class Looks extends PeriodicService {

    private static final int SHARE = 50;

    private static final Duration SHORTEST_PAUSE = Duration.ofSeconds(5);

    private final WorkerContext context;
    private final Claims claims;
    private final Ownership ownership;

    /** Creates the looks of one worker. */
    public Looks(WorkerContext context, Claims claims, Ownership ownership) {
        super("worker-scan", "look for jobs before the floors of claims", context.outage());
        this.context = context;
        this.claims = claims;
        this.ownership = ownership;
    }

    @Override
    protected Duration work() throws SQLException {
        Duration left = pause().minus(claims.sinceLook());
        if (!left.isNegative() && !left.isZero()) {
            return left;
        }
        if (!ownership.mayClaim()) {
            return SHORTEST_PAUSE;
        }
        if (claims.lookAtAll().anyDue()) {
            context.signal().jobsMayBeDue();
        }
        return pause();
    }

    private Duration pause() {
        Duration pause = claims.lookTook().multipliedBy(SHARE);
        return pause.compareTo(SHORTEST_PAUSE) < 0 ? SHORTEST_PAUSE : pause;
    }
}
