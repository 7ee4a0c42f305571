package dev.pgworker.internal.store;

import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Objects;

import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.job.DeadWorker;
import dev.pgworker.job.Job;
import dev.pgworker.task.JobRecoveryHandler;
import dev.pgworker.task.RecoveryDecision;

/** Asks the application's handlers what becomes of the jobs of dead workers. */
record RecoveryHandlers(List<JobRecoveryHandler> handlers) {

    private static final Logger log = WorkerLog.of(RecoveryHandlers.class);

    /** How long handlers may take in one sweep, in whose transaction they are asked; then others may sweep. */
    private static final Duration LIMIT = Duration.ofMinutes(1);

    RecoveryHandlers {
        handlers = List.copyOf(handlers);
    }

    /** Begins the questions of one sweep. */
    Round begin() {
        return new Round();
    }

    /** The questions of one sweep. Owned by the thread that sweeps. */
    final class Round {

        private final long end = System.nanoTime() + LIMIT.toNanos();
        private int left;

        /** Returns what becomes of a job; it is left for the next sweep if the handlers have taken too long. */
        RecoveryDecision decide(Job job, DeadWorker worker) throws SQLException {
            if (!handlers.isEmpty() && System.nanoTime() - end >= 0) {
                left++;
                return RecoveryDecision.skip();
            }
            return ask(job, worker);
        }

        /** Logs how many jobs have been left. */
        void tellLeft() {
            if (left > 0) {
                log.warn(
                        "Recovery handlers took {} s; {} jobs of dead workers are left for the next sweep",
                        LIMIT.toSeconds(),
                        left);
            }
        }
    }

    private RecoveryDecision ask(Job job, DeadWorker worker) throws SQLException {
        for (JobRecoveryHandler handler : handlers) {
            try {
                RecoveryDecision decision =
                        Objects.requireNonNull(handler.decide(job, worker), "a handler must decide");
                Instant runAt = decision.runAt();
                if (runAt != null && !Timestamps.storable(runAt)) {
                    throw new IllegalArgumentException(
                            "the database cannot store " + runAt + " as the time of the next run");
                }
                if (decision.kind() != RecoveryDecision.Kind.DEFAULT) {
                    return decision;
                }
            } catch (Throwable e) {
                // The application's: it may throw anything, and what it throws may not be readable.
                if (e instanceof InterruptedException || Thread.currentThread().isInterrupted()) {
                    Thread.currentThread().interrupt();
                    throw new SQLException(
                            "The sweep was interrupted while a recovery handler decided about " + job
                                    + "; all jobs are left for the next one",
                            "57014");
                }
                log.warn(
                        "Recovery handler {} failed on {}, which is recovered as usual",
                        handler.getClass().getName(),
                        job,
                        e);
                return RecoveryDecision.useDefault();
            }
        }
        return RecoveryDecision.useDefault();
    }
}
