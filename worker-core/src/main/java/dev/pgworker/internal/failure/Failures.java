package dev.pgworker.internal.failure;

import java.sql.SQLException;
import java.time.Duration;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

/**
 * Logs why a service fails although the database can be used: a cause once, and again after a success or when another has
 * come between. An error of the worker itself comes with its stack trace, and again each minute while it lasts. Used by one
 * thread.
 */
public final class Failures {

    private static final Logger log = WorkerLog.of(Failures.class);

    private static final long REMINDER_NANOS = Duration.ofMinutes(1).toNanos();

    private final String service;
    private @Nullable String reported;
    private long reportedAt;

    public Failures(String service) {
        this.service = service;
    }

    /** Logs a failure that is not an outage, unless it is the one that was logged last. */
    public void report(DatabaseFailure kind, Throwable failure) {
        String cause = cause(kind, failure);
        long now = System.nanoTime();
        boolean known = cause.equals(reported);
        if (known && (kind != DatabaseFailure.INTERNAL || now - reportedAt < REMINDER_NANOS)) {
            log.debug("Failure in {}", service, failure);
            return;
        }
        reported = cause;
        reportedAt = now;
        switch (kind) {
            case INTERNAL ->
                log.error(
                        "Internal error in thread {}, which continues; report it with this stack trace",
                        service,
                        failure);
            case CONFLICT ->
                log.warn(
                        "Thread {} repeatedly conflicts with other transactions, and keeps trying: {}",
                        service,
                        Outage.describe(failure));
            case CANCELLED ->
                log.warn(
                        "A statement of thread {} was cancelled and is retried: {}", service, Outage.describe(failure));
            default ->
                log.error(
                        "A statement of thread {} was rejected by the database, and is retried: {}",
                        service,
                        Outage.describe(failure));
        }
    }

    /** Notes that the service works. */
    public void succeeded() {
        reported = null;
    }

    /** Returns what is the same for repetitions: messages may name a row or a time. */
    private static String cause(DatabaseFailure kind, Throwable failure) {
        Throwable current = failure;
        for (int depth = 0; current != null && depth < 20; depth++) {
            if (current instanceof SQLException e && e.getSQLState() != null) {
                return kind + " " + e.getSQLState();
            }
            current = current.getCause();
        }
        StackTraceElement[] trace = failure.getStackTrace();
        return kind + " " + failure.getClass().getName() + (trace.length == 0 ? "" : " " + trace[0]);
    }
}
