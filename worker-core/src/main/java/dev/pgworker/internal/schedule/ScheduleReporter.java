package dev.pgworker.internal.schedule;

import java.sql.SQLException;
import java.time.Instant;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.schedule.ScheduleRules.Decision;
import dev.pgworker.internal.schedule.ScheduleRules.Failed;
import dev.pgworker.internal.schedule.ScheduleRules.Skipped;
import dev.pgworker.internal.store.ScheduleStep;
import dev.pgworker.internal.store.ScheduleStep.NewJob;

/** Reports to listeners all that becomes of schedules, and logs once what needs an action. Used by one thread. */
final class ScheduleReporter {

    private static final Logger log = WorkerLog.of(ScheduleReporter.class);

    /** Of so many it is remembered that something has been logged. */
    private static final int MOST_TOLD = 10_000;

    /** So many schedules are worth a message within a while: what all have in common may fail for a hundred thousand at once. */
    private static final int MOST_LOGGED = 100;

    private static final long WHILE_NANOS = TimeUnit.HOURS.toNanos(1);

    private static final int LONGEST_PROBLEM = 1_000;

    private final String workerId;
    private final WorkerEvents events;

    /** Schedules whose job an interceptor rejected last time. */
    private final Set<String> rejected = new HashSet<>();

    private int logged;
    private long loggedSince = System.nanoTime();

    ScheduleReporter(String workerId, WorkerEvents events) {
        this.workerId = workerId;
        this.events = events;
    }

    /** Reports what has been committed. */
    void report(Decision decision, List<Long> jobIds) {
        ScheduleStep step = decision.step();
        String name = step.due().name();
        if (step.problem() != null) {
            reportBroken(name, step.problem(), decision.failed());
            return;
        }
        if (decision.failed().isEmpty()) {
            if (!step.jobs().isEmpty()) {
                rejected.remove(name);
            }
        } else {
            reportRejected(name, decision.failed());
        }
        if (!events.isWatched()) {
            return;
        }
        for (Skipped one : decision.skipped()) {
            events.publish(new WorkerEvent.ScheduleSkipped(workerId, name, one.dueAt(), one.count(), one.reason()));
        }
        for (int i = 0; i < jobIds.size(); i++) {
            NewJob job = step.jobs().get(i);
            events.publish(
                    new WorkerEvent.ScheduleExecuted(workerId, name, job.dueAt(), jobIds.get(i), job.backfilled()));
        }
    }

    /** The row names the problem from then on, so that no worker looks at it again before it is changed. */
    private void reportBroken(String name, String problem, List<Failed> failed) {
        if (isWorthAMessage()) {
            log.error("Schedule {} is not executed: {}. Change it (RecurringJobs.put), or delete it", name, problem);
        }
        failed.forEach(one -> publishFailed(name, one.dueAt(), one.error()));
    }

    private void reportRejected(String name, List<Failed> failed) {
        if (rejected.size() >= MOST_TOLD) {
            rejected.clear();
        }
        for (Failed one : failed) {
            if (rejected.add(name) && isWorthAMessage()) {
                log.error(
                        "The job of schedule {} was rejected for {}, probably by an interceptor: it is not added",
                        name,
                        one.dueAt(),
                        one.error());
            }
            publishFailed(name, one.dueAt(), one.error());
        }
    }

    /**
     * Reports that a schedule could not be executed, unless that has been reported before.
     *
     * @param decision what could not be written; null if not even the row could be read
     * @param held whether an open transaction is in the way
     * @return the problem for the row
     */
    String reportPutOff(String name, @Nullable Decision decision, boolean held, SQLException error) {
        Instant dueAt = decision == null ? null : decision.step().due().nextAt();
        String problem = held
                ? "An open transaction holds the job of its job key; retried every few seconds"
                : "The database refuses its job, which is retried every minute: " + ErrorText.headline(error);
        boolean said = decision != null && decision.step().due().row().status().problem() != null;
        if (!said && isWorthAMessage()) {
            if (held) {
                log.warn(
                        "Schedule {} waits for {}: an open transaction holds the job of its job key; retrying every few seconds",
                        name,
                        dueAt);
            } else {
                log.error(
                        "Schedule {} could not be executed for {} and will be retried every minute",
                        name,
                        dueAt,
                        error);
            }
        }
        publishFailed(name, dueAt, error);
        return problem.length() > LONGEST_PROBLEM ? problem.substring(0, LONGEST_PROBLEM) : problem;
    }

    private boolean isWorthAMessage() {
        long time = System.nanoTime();
        if (time - loggedSince > WHILE_NANOS) {
            loggedSince = time;
            logged = 0;
        }
        if (logged == MOST_LOGGED) {
            log.error(
                    "More schedules are not executed: ScheduleFailed and the column problem tell which, and for an hour the log does"
                            + " not");
        }
        return logged++ < MOST_LOGGED;
    }

    private void publishFailed(String name, @Nullable Instant dueAt, Exception error) {
        events.publish(new WorkerEvent.ScheduleFailed(workerId, name, dueAt, error));
    }
}
