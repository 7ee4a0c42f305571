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
 *
 * <p>An outage is over when for a while no service has failed: connections break one after the other, and a service that
 * finds a working one says little about the others.
 */
public final class Outage {

    private static final Logger log = LoggerFactory.getLogger(Outage.class);

    private static final Duration CALM = Duration.ofSeconds(2);

    private final long calmNanos;

    @GuardedBy("this") private final Set<String> failing = new LinkedHashSet<>();

    @GuardedBy("this") private long since;

    @GuardedBy("this") private long lastFailure;

    /** Written under the lock, read without it to keep the successful path free of locks. */
    private volatile boolean present;

    /** Creates the record of a worker without any outage. */
    public Outage() {
        this(CALM);
    }

    Outage(Duration calm) {
        calmNanos = calm.toNanos();
    }

    /** Notes that a service failed. */
    public synchronized void failed(String service, Throwable error) {
        lastFailure = System.nanoTime();
        failing.add(service);
        if (!present) {
            present = true;
            since = lastFailure;
            log.warn("The database cannot be used ({}); trying again until it can: {}", service, describe(error));
        }
        log.debug("Failure in {}", service, error);
    }

    /** Notes that a service works. */
    public void succeeded(String service) {
        if (present) {
            recovered(service);
        }
    }

    /** Returns true from the first failure until the outage is over. */
    public boolean isPresent() {
        return present;
    }

    private synchronized void recovered(String service) {
        failing.remove(service);
        if (present && failing.isEmpty() && System.nanoTime() - lastFailure >= calmNanos) {
            present = false;
            log.info(
                    "The database can be used again; it failed for {} s",
                    Duration.ofNanos(lastFailure - since).toMillis() / 1000.0);
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
