package dev.pgworker.internal.crontab;

import java.time.Duration;
import java.time.Instant;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;

/** Notices when the database's clock is set back, and logs that once each time. Used by one thread. */
final class ClockWatch {

    private static final Logger log = WorkerLog.of(ClockWatch.class);

    /** What a clock that is kept in step, or the next primary's, may go back without being set. */
    static final Duration TOLERANCE = Duration.ofSeconds(5);

    private @Nullable Instant latest;

    /** Takes the present time, and returns whether it lies before one that was seen earlier. */
    boolean isSetBack(Instant now) {
        Instant seen = latest;
        if (seen == null || now.isAfter(seen)) {
            latest = now;
            return false;
        }
        if (Duration.between(now, seen).compareTo(TOLERANCE) <= 0) {
            return false;
        }
        latest = now;
        log.warn(
                "The clock of the database was set back from {} to {}: recurring jobs that were added for minutes up to"
                        + " the former time are not added again; RecurringJobs shows when each item is due next",
                seen,
                now);
        return true;
    }
}
