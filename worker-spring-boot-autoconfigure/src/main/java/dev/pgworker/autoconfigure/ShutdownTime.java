package dev.pgworker.autoconfigure;

import java.time.Duration;

import org.slf4j.Logger;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.core.env.Environment;

import dev.pgworker.WorkerSettings;
import dev.pgworker.internal.failure.WorkerLog;

/**
 * Compares the time that the worker may take to stop with the time that Spring gives it. When that is over, Spring closes
 * the connection pool, and outcomes cannot be written any more.
 */
final class ShutdownTime {

    private static final Logger log = WorkerLog.of(ShutdownTime.class);

    private static final String PROPERTY = "spring.lifecycle.timeout-per-shutdown-phase";
    private static final Duration SPRING_DEFAULT = Duration.ofSeconds(30);

    private ShutdownTime() {}

    /** Warns if Spring does not wait for as long as the worker may take. */
    static void check(String prefix, WorkerSettings settings, Environment environment) {
        Duration given = Binder.get(environment).bind(PROPERTY, Duration.class).orElseGet(() -> SPRING_DEFAULT);
        Duration needed = settings.stopLimit();
        if (given.compareTo(needed) < 0) {
            log.warn(
                    "{}.shutdown.grace-period is {} s, but Spring waits {} s for the worker to stop: set {} to at least"
                            + " {}s, and what kills the process (terminationGracePeriodSeconds) above that",
                    prefix,
                    settings.shutdownGracePeriod().toSeconds(),
                    given.toSeconds(),
                    PROPERTY,
                    needed.toSeconds());
        }
    }
}
