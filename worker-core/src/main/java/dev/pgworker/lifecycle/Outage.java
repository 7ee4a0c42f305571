package dev.pgworker.lifecycle;

import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.Set;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Which of a worker's services cannot use the database, so that an outage is logged once however many services notice
 * it and however often they retry. Safe for use by many threads.
 */
public final class Outage {

    private static final Logger log = LoggerFactory.getLogger(Outage.class);

    private final Set<String> failing = new LinkedHashSet<>();

    @GuardedBy("this") private long since;

    /** Written under the lock, read without it to keep the successful path free of locks. */
    private volatile boolean present;

    /** Notes that a service failed. */
    public synchronized void failed(String service, Throwable error) {
        if (failing.isEmpty()) {
            since = System.nanoTime();
            present = true;
            log.warn("The database cannot be used ({}); trying again until it can: {}", service, describe(error));
        }
        failing.add(service);
        log.debug("Failure in {}", service, error);
    }

    /** Notes that a service works. */
    public void succeeded(String service) {
        if (present) {
            remove(service);
        }
    }

    /** Returns true while at least one service fails. */
    public boolean isPresent() {
        return present;
    }

    private synchronized void remove(String service) {
        if (failing.remove(service) && failing.isEmpty()) {
            present = false;
            Duration length = Duration.ofNanos(System.nanoTime() - since);
            log.info("The database can be used again after {} s", length.toMillis() / 1000.0);
        }
    }

    /** Puts the messages of an exception and its causes into one line. */
    private static String describe(Throwable error) {
        StringBuilder text = new StringBuilder(error.toString());
        Throwable cause = error.getCause();
        if (cause != null && cause.getMessage() != null && !text.toString().contains(cause.getMessage())) {
            text.append("; ").append(cause);
        }
        return text.toString().replace('\n', ' ');
    }
}
