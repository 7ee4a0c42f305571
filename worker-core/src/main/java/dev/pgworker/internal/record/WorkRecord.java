package dev.pgworker.internal.record;

import java.sql.SQLException;
import java.time.Duration;
import java.util.List;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.engine.run.RunningAttempts;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.store.RenewedLocks;
import dev.pgworker.internal.store.RunningStore;
import dev.pgworker.internal.store.StatisticsStore;

/**
 * Records on {@code worker-record} what a worker does, for those who look at it. Nothing waits for this thread, and no job is lost
 * with what it could not write.
 */
public final class WorkRecord extends BackgroundService {

    static final String THREAD = "worker-record";

    private static final Logger log = WorkerLog.of(WorkRecord.class);

    private static final long LONGEST_PAUSE_NANOS = Duration.ofSeconds(2).toNanos();

    private static final long SHORTEST_PAUSE_NANOS = Duration.ofMillis(100).toNanos();

    private final List<Recording> recordings;
    private final Outage outage;

    /**
     * Creates the service of one worker.
     *
     * @param counts what statistics are made of; null to record none
     */
    public WorkRecord(
            RunningAttempts attempts,
            RenewedLocks locks,
            RunningStore running,
            @Nullable TaskCounts counts,
            StatisticsStore statistics,
            Outage outage) {
        super(THREAD, true, outage);
        this.outage = outage;
        RunningJobs jobs = new RunningJobs(attempts, locks, running);
        recordings = counts == null
                ? List.of(jobs)
                : List.of(jobs, new TaskMinutes(counts, statistics), new BacklogSamples(statistics));
    }

    @Override
    protected void step() throws SQLException, InterruptedException {
        long wait = LONGEST_PAUSE_NANOS;
        for (Recording recording : recordings) {
            wait = Math.min(wait, recording.dueIn());
        }
        // Also where all are due: a write that has just failed is not repeated at once.
        pause(Math.max(wait, SHORTEST_PAUSE_NANOS));
        for (Recording recording : recordings) {
            if (!isStopping() && recording.dueIn() <= 0) {
                recording.record();
                progress();
            }
        }
    }

    @Override
    protected void afterLastStep() {
        if (outage.isPresent()) {
            return;
        }
        for (Recording recording : recordings) {
            try {
                recording.finish();
            } catch (SQLException | RuntimeException e) {
                log.debug("The last record could not be written", e);
            }
        }
    }
}
