package dev.pgworker;

import java.sql.SQLException;
import java.time.Duration;

import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.UncategorizedSQLException;
import org.springframework.jdbc.support.SQLStateSQLExceptionTranslator;

import dev.pgworker.internal.engine.claim.Claims;
import dev.pgworker.internal.engine.queue.InFlight.Progress;
import dev.pgworker.internal.failure.DatabaseFailure;

/** Runs every job that is due on the handler executor, claims them on the calling thread, and returns when there is none left. */
final class SinglePass {

    /** How often a pass looks after jobs that have waited too long for a handler. */
    private static final Duration TEND_INTERVAL = Duration.ofMillis(200);

    /** How soon to look again whether a handler is free whose job has ended. */
    private static final Duration HAND_OVER = Duration.ofMillis(1);

    private static final int MOST_CONFLICTS = 10;

    private final WorkerServices services;

    SinglePass(WorkerServices services) {
        this.services = services;
    }

    /**
     * Runs the jobs; the caller stops the services.
     *
     * @return how many jobs have been run
     */
    long run() throws InterruptedException {
        services.context.events().start();
        services.history.lookOnce();
        services.heartbeat.start();
        services.completer.start();
        services.periodic.start(services.reconciler);
        services.cancels.start();
        services.record.start();
        try {
            services.pauses.lookOnce();
            services.periodic.start(services.pauses);
            services.limits.applyOnce();
            services.recurring.continuations().continueOnce();
            services.claims.learnTasks();
            while (true) {
                if (services.lease.isLost()) {
                    throw new IllegalStateException(
                            "Worker " + services.context.workerId() + " could not send a heartbeat");
                }
                services.claims.tend();
                // Read first: a job settled after this may have added one that the claim does not see.
                Progress before = services.localQueue.inFlight().progress();
                boolean idle = before.idle() && !services.completer.isFreeingQueues();
                // Read first, too: without a claim it is unknown what is left, and the lease may begin, or a handler
                // end, any moment.
                int room = services.localQueue.free();
                boolean mayClaim = room > 0 && services.lease.isHeld();
                boolean anyFetched = mayClaim && fetch(room);
                if (!anyFetched && idle && mayClaim) {
                    // The ends of jobs may have released others.
                    if (!services.recurring.continuations().continueOnce()) {
                        return before.settled();
                    }
                } else if (!anyFetched) {
                    services.localQueue
                            .inFlight()
                            .awaitSettledBeyond(before.settled(), idle ? HAND_OVER : TEND_INTERVAL);
                }
            }
        } catch (SQLException e) {
            throw translate(e);
        }
    }

    /** Returns whether there may be more. */
    private boolean fetch(int room) throws SQLException {
        Claims.Result limited = services.limitedClaims.claim(room);
        if (limited.count() > 0 || limited.again()) {
            return true;
        }
        Claims.Result result = fetchUndisturbed(room);
        if (result.count() == 0 && !result.full()) {
            // There is no listener: what handlers have added may lie anywhere.
            services.due.forget();
            result = fetchUndisturbed(room);
        }
        return result.count() > 0 || result.full();
    }

    /** Claims jobs, once more where another transaction was in the way, or a single job that the next claim passes over. */
    private Claims.Result fetchUndisturbed(int room) throws SQLException {
        for (int attempt = 1; ; attempt++) {
            try {
                return services.claims.claim(room);
            } catch (SQLException e) {
                boolean outage = DatabaseFailure.of(e) == DatabaseFailure.OUTAGE && !DatabaseFailure.isAnswer(e);
                if (outage || attempt == MOST_CONFLICTS) {
                    throw e;
                }
            }
        }
    }

    private static DataAccessException translate(SQLException e) {
        DataAccessException translated = new SQLStateSQLExceptionTranslator().translate("run the due jobs", null, e);
        return translated == null ? new UncategorizedSQLException("run the due jobs", null, e) : translated;
    }
}
