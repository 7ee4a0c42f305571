package dev.pgworker.autoconfigure.health;

import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.health.contributor.AbstractHealthIndicator;
import org.springframework.boot.health.contributor.Health;

import dev.pgworker.Worker;
import dev.pgworker.WorkerStatus;

/**
 * For liveness: down if only a new process helps. A thread of the worker has ended although nobody stopped it, or hangs
 * without waiting for the database, or the worker could not start over after it was lost. Up whatever the database does,
 * and up if somebody has stopped the worker.
 */
final class ThreadsHealthIndicator extends AbstractHealthIndicator {

    private final Supplier<@Nullable Worker> worker;

    /** Creates an indicator that asks for the worker at each check, because it is built after all other beans. */
    ThreadsHealthIndicator(Supplier<@Nullable Worker> worker) {
        super("The worker's status cannot be determined");
        this.worker = worker;
    }

    @Override
    protected void doHealthCheck(Health.Builder builder) {
        builder.up();
        Worker worker = this.worker.get();
        if (worker == null) {
            return;
        }
        WorkerStatus status = worker.status();
        String problem = status != null
                ? problem(status)
                : worker.hasFailed() ? "The worker was lost and could not restart" : null;
        if (problem != null) {
            builder.down().withDetail("problem", problem);
        }
    }

    /** Returns what is wrong with the threads, or null. */
    static @Nullable String problem(WorkerStatus status) {
        if (!status.deadThreads().isEmpty()) {
            return "Threads have ended: " + String.join(", ", status.deadThreads());
        }
        if (!status.stuckThreads().isEmpty()) {
            return "Threads hang: " + String.join(", ", status.stuckThreads());
        }
        return null;
    }
}
