package dev.pgworker.autoconfigure.health;

import java.time.Duration;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.health.contributor.AbstractHealthIndicator;
import org.springframework.boot.health.contributor.Health;

import dev.pgworker.Worker;
import dev.pgworker.WorkerSettings;
import dev.pgworker.WorkerStatus;
import dev.pgworker.history.HistoryLosses;
import dev.pgworker.job.Pause;

/**
 * For readiness: down if the worker does not do its work although the database would let it. It does not run, a thread has
 * ended or hangs, due jobs do not start, or something that it does regularly has not been done for long: heartbeat, claim,
 * completion or listener, each by its name. It is down at once if the database refuses to register it. Never asks the
 * database, and stays up while no part of the worker can use that: a new process could not use it either. Out of service until the worker has
 * {@linkplain Worker#awaitStarted started}. An application that only adds jobs has no worker and is up. So is one that does nothing
 * because that is paused, or lets no limited jobs through because others lock them, which it says: to take it out of traffic would
 * not help.
 */
final class EngineHealthIndicator extends AbstractHealthIndicator {

    /** What a loop may take beyond its interval, for instance because a statement waits for a lock. */
    private static final Duration TOLERANCE = Duration.ofMinutes(1);

    /** The worker finds out every few seconds whether due jobs start; a large table makes it take longer. */
    private static final Duration LONGEST_AUDIT = Duration.ofMinutes(2);

    private final Supplier<@Nullable Worker> worker;
    private final Duration longestFetch;
    private final Duration longestHeartbeat;
    private final boolean autoStartup;

    /**
     * Creates an indicator that asks for the worker at each check, because it is built after all other beans.
     *
     * @param autoStartup whether a worker that does not run is a problem
     */
    EngineHealthIndicator(Supplier<@Nullable Worker> worker, WorkerSettings settings, boolean autoStartup) {
        super("The worker's status cannot be determined");
        this.worker = worker;
        this.autoStartup = autoStartup;
        longestFetch = settings.pollInterval().multipliedBy(2).plus(TOLERANCE);
        longestHeartbeat =
                settings.recovery().heartbeatInterval().multipliedBy(2).plus(TOLERANCE);
    }

    @Override
    protected void doHealthCheck(Health.Builder builder) {
        Worker worker = this.worker.get();
        builder.up();
        if (worker == null || hasNoWork(worker)) {
            builder.withDetail("runsJobs", false);
            return;
        }
        builder.withDetail("runsJobs", !worker.tasks().isEmpty());
        WorkerStatus status = worker.status();
        if (status == null && !autoStartup && !worker.hasFailed()) {
            builder.withDetail("started", false);
            return;
        }
        String problem = status == null ? "The worker is not running" : problem(status);
        if (problem != null) {
            builder.down().withDetail("problem", problem);
        } else if (status != null && !status.starting().isEmpty() && !status.outage()) {
            builder.outOfService();
        }
        if (status != null) {
            describe(status, builder);
        }
    }

    private static boolean hasNoWork(Worker worker) {
        return worker.tasks().isEmpty()
                && worker.cronItems().isEmpty()
                && worker.declaredSchedules().isEmpty();
    }

    /** Returns what is wrong, or null. */
    @Nullable String problem(WorkerStatus status) {
        String threads = ThreadsHealthIndicator.problem(status);
        if (threads != null) {
            return threads;
        }
        if (status.stall() != null) {
            return "Due jobs do not start although a handler is free: " + status.stall();
        }
        for (WorkerStatus.FailingLoop loop : status.failing()) {
            boolean refused = loop.name().equals("heartbeat") && status.sinceHeartbeat() == null && !status.outage();
            if (!loop.outage() && (refused || loop.time().compareTo(longestHeartbeat) > 0)) {
                return "The " + loop.name() + " has failed for " + loop.time().toSeconds() + " s: " + loop.reason();
            }
        }
        if (status.outage()) {
            return null;
        }
        if (status.sinceFetch().compareTo(longestFetch) > 0) {
            return "The worker has not looked for jobs for more than " + longestFetch.toSeconds() + " s";
        }
        Duration sinceHeartbeat = status.sinceHeartbeat();
        if ((sinceHeartbeat == null ? status.sinceStart() : sinceHeartbeat).compareTo(longestHeartbeat) > 0) {
            return "No heartbeat for more than " + longestHeartbeat.toSeconds() + " s";
        }
        if (status.sinceAudit().compareTo(LONGEST_AUDIT) > 0) {
            return "Whether due jobs start has not been checked for more than " + LONGEST_AUDIT.toSeconds() + " s";
        }
        return null;
    }

    private static void describe(WorkerStatus status, Health.Builder builder) {
        builder.withDetail("worker", status.workerId())
                .withDetail("running", status.running())
                .withDetail("freeSlots", status.freeSlots())
                .withDetail("listening", status.pollingOnly() ? "disabled" : status.listening())
                .withDetail("databaseUsable", !status.outage())
                .withDetail("secondsSinceFetch", status.sinceFetch().toSeconds());
        if (!status.starting().isEmpty()) {
            builder.withDetail("starting", status.starting());
        }
        Duration sinceHeartbeat = status.sinceHeartbeat();
        if (sinceHeartbeat != null) {
            builder.withDetail("secondsSinceHeartbeat", sinceHeartbeat.toSeconds());
        }
        builder.withDetail("secondsSinceAudit", status.sinceAudit().toSeconds())
                .withDetail("reconciled", status.reconciled());
        if (!status.failing().isEmpty()) {
            builder.withDetail(
                    "failing",
                    status.failing().stream()
                            .map(loop -> loop.name() + ", for " + loop.time().toSeconds() + " s: " + loop.reason())
                            .toList());
        }
        if (!status.unservedTasks().isEmpty()) {
            builder.withDetail(
                    "unservedTasks",
                    status.unservedTasks().stream()
                            .map(WorkerStatus.UnservedTask::task)
                            .toList());
        }
        if (!status.pauses().isEmpty()) {
            builder.withDetail(
                    "paused", status.pauses().stream().map(Pause::text).toList());
        }
        if (!status.heldUp().isEmpty()) {
            builder.withDetail("heldUp", status.heldUp());
        }
        HistoryLosses losses = status.historyLosses();
        if (losses != null) {
            builder.withDetail("historyLosses", losses.jobs() + " in the last day: " + losses.reason());
        }
        WorkerStatus.HeldSnapshot held = status.heldSnapshot();
        if (held != null) {
            builder.withDetail(
                    "heldSnapshot", held.holder() + ", for " + held.age().toSeconds() + " s");
        }
    }
}
