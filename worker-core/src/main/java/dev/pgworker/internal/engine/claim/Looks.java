package dev.pgworker.internal.engine.claim;

import java.sql.SQLException;
import java.time.Duration;
import java.util.List;

import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.run.Ownership;
import dev.pgworker.internal.lifecycle.PeriodicService;

/**
 * Looks at all jobs for what was not announced, while the thread that claims does not, because it has other things to
 * do or a look takes long: much is left of finished jobs then. It takes a fiftieth of the time.
 */
public final class Looks extends PeriodicService {

    private static final int SHARE = 50;

    private static final Duration SHORTEST_PAUSE = Duration.ofSeconds(5);

    private final WorkerContext context;
    private final List<DueJobs> all;
    private final Ownership ownership;

    /** Creates the looks of one worker. */
    public Looks(WorkerContext context, List<DueJobs> all, Ownership ownership) {
        super("worker-scan", "look for jobs before the floors of claims", context.outage());
        this.context = context;
        this.all = all;
        this.ownership = ownership;
    }

    @Override
    protected Duration work() throws SQLException {
        Duration next = SHORTEST_PAUSE.multipliedBy(SHARE);
        for (DueJobs due : all) {
            Duration left = pause(due).minus(due.sinceLook());
            if ((left.isNegative() || left.isZero()) && ownership.mayClaim()) {
                if (due.lookAtAll().anyDue()) {
                    context.signal().jobsMayBeDue();
                }
                left = pause(due);
            }
            next = left.compareTo(next) < 0 ? left : next;
        }
        return ownership.mayClaim() ? next : SHORTEST_PAUSE;
    }

    private static Duration pause(DueJobs due) {
        Duration pause = due.lookTook().multipliedBy(SHARE);
        return pause.compareTo(SHORTEST_PAUSE) < 0 ? SHORTEST_PAUSE : pause;
    }
}
