package dev.pgworker.internal.schedule;

import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;

import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.PeriodicService;

/**
 * Executes the schedules that were put off, on {@code worker-schedules-late}: those that have failed, run missed
 * executions, are slow, or were due together with several slow ones. Those that are in time do not wait behind them.
 * {@link ScheduleService} wakes this service when there are some.
 */
final class LateSchedules extends PeriodicService {

    /** How long to wait where other workers have locked all of them. */
    private static final Duration HELD = Duration.ofMillis(500);

    /** Returns the time of the database. */
    @FunctionalInterface
    interface Clock {
        Instant now() throws SQLException;
    }

    private final ScheduleExecutor executor;
    private final Clock clock;

    LateSchedules(ScheduleExecutor executor, Clock clock, Outage outage) {
        super("worker-schedules-late", "execute the schedules that are late or slow", outage);
        this.executor = executor;
        this.clock = clock;
    }

    /** Wakes the service because there are some. Never waits. */
    void areDue() {
        wake();
    }

    @Override
    protected Duration work() throws SQLException {
        return switch (executor.executeLater(clock.now(), this::isStopping)) {
            case NONE -> UNTIL_WOKEN;
            case HELD -> HELD;
            case DONE -> Duration.ZERO;
        };
    }

    @Override
    protected Duration firstPause() {
        return UNTIL_WOKEN;
    }
}
