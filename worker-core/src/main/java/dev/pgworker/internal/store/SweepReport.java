package dev.pgworker.internal.store;

import org.slf4j.Logger;

import dev.pgworker.event.RecoveryOutcome;
import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.WorkerLog;

/** Reports what a sweep has done, in the log and as events, in the same way for all sweeps. */
public final class SweepReport {

    private static final Logger log = WorkerLog.of(SweepReport.class);

    private SweepReport() {}

    /**
     * Reports a sweep that has taken effect.
     *
     * @param workerId who has swept
     */
    public static void tell(SweepStore.Result result, String workerId, WorkerEvents events) {
        if (!result.worthTelling()) {
            return;
        }
        log.warn(
                "Workers {} are dead; {} jobs have been recovered from them",
                result.workerIds(),
                result.jobs().size());
        for (SweepStore.Recovered recovered : result.jobs()) {
            log.info(
                    "{} was recovered from dead worker {} ({}): {}",
                    recovered.job(),
                    recovered.worker().id(),
                    recovered.worker().reason(),
                    recovered.outcome());
            if (events.isWatched()) {
                events.publish(event(recovered, workerId));
            }
        }
        events.publish(new WorkerEvent.WorkersRecovered(
                workerId, result.workers(), result.jobs().size()));
    }

    private static WorkerEvent event(SweepStore.Recovered recovered, String workerId) {
        if (recovered.outcome() == RecoveryOutcome.CANCELLED) {
            return new WorkerEvent.JobCancelled(workerId, recovered.job());
        }
        return recovered.outcome() == RecoveryOutcome.SUPERSEDED
                ? new WorkerEvent.SupersededJobEnded(workerId, recovered.job(), recovered.worker())
                : new WorkerEvent.JobRecovered(workerId, recovered.job(), recovered.worker(), recovered.outcome());
    }
}
