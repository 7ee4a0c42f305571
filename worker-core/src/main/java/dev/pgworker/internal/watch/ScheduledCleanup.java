package dev.pgworker.internal.watch;

import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.scheduling.support.CronExpression;

import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.PeriodicService;
import dev.pgworker.internal.store.CleanupStore;
import dev.pgworker.job.CleanupResult;
import dev.pgworker.job.CleanupSettings;

/**
 * Cleans up on {@code worker-cleanup} at the times of the settings, by the database's clock. Of all workers that do,
 * one does it at each time. A time at which no worker runs, or at which it fails, is left out: there will be another.
 */
public final class ScheduledCleanup extends PeriodicService {

    /** In whose name it is done. */
    public static final String USER = "pgworker.cleanup";

    private static final Logger log = WorkerLog.of(ScheduledCleanup.class);

    /** After which the time is asked for in any case, so that a jump of the clock is noticed. */
    private static final Duration LONGEST_WAIT = Duration.ofMinutes(10);

    /** After which one leaves the rest to the next: well before others may take it for dead, see {@link CleanupStore#begin}. */
    private static final Duration LONGEST_CLEANUP = Duration.ofMinutes(10);

    /** Cleans up. */
    @FunctionalInterface
    public interface CleanUp {

        /**
         * Cleans up, reports it to the log and to listeners, and returns what has been done.
         *
         * @param limit after which to leave the rest to the next clean-up
         */
        CleanupResult within(Duration limit);
    }

    private final CronExpression schedule;
    private final CleanupSettings settings;
    private final CleanupStore store;
    private final CleanUp cleanUp;

    // Owned by the work.
    private @Nullable Instant next;

    /**
     * Creates the service of one worker.
     *
     * @param schedule of the settings
     * @param cleanUp cleans up by the settings, in the name of {@link #USER}
     */
    public ScheduledCleanup(
            String schedule, CleanupSettings settings, CleanupStore store, CleanUp cleanUp, Outage outage) {
        super("worker-cleanup", "clean up", outage);
        this.schedule = CronExpression.parse(schedule);
        this.settings = settings;
        this.store = store;
        this.cleanUp = cleanUp;
    }

    @Override
    protected Duration work() throws SQLException {
        Instant now = store.now();
        Instant due = next;
        if (due == null || isNotNext(now, due)) {
            due = after(now);
            next = due;
        }
        if (due.isAfter(now)) {
            Duration wait = Duration.between(now, due);
            return wait.compareTo(LONGEST_WAIT) > 0 ? LONGEST_WAIT : wait;
        }
        next = after(now);
        if (store.begin(due)) {
            try {
                cleanUp();
            } finally {
                store.end(due);
            }
        }
        return Duration.ZERO;
    }

    /** Returns true if the clock has been set back. */
    private boolean isNotNext(Instant now, Instant due) {
        return after(now).isBefore(due);
    }

    private Instant after(Instant now) {
        ZonedDateTime time = schedule.next(now.atZone(settings.zone()));
        // Never the case, as the settings have found one since the year 2000.
        return time == null ? now.plus(LONGEST_WAIT) : time.toInstant();
    }

    private void cleanUp() {
        try {
            CleanupResult result = cleanUp.within(LONGEST_CLEANUP);
            if (!result.skipped().isEmpty()) {
                log.info(
                        "The clean-up of {} is put off to {}: other transactions used the tables",
                        result.skipped(),
                        next);
            }
        } catch (RuntimeException e) {
            if (DatabaseFailure.of(e) == DatabaseFailure.OUTAGE) {
                throw e;
            }
            log.error(
                    "The clean-up of {} (pgworker.cleanup) failed; the next one is at {}. The worker's role needs the rights of an"
                            + " operator for it, see docs/schema.md: {}",
                    settings.tasks(),
                    next,
                    ErrorText.headline(e));
        }
    }
}
