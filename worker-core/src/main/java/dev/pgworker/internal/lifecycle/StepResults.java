package dev.pgworker.internal.lifecycle;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.Backoff;
import dev.pgworker.internal.failure.DatabaseContact;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.failure.Failures;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.failure.WorkerLog;

/**
 * What the steps of a service come to: notes an outage, logs other failures, and decides how long to wait after each.
 * Used by one thread at a time.
 */
final class StepResults {

    private static final Logger log = WorkerLog.of(StepResults.class);

    /** So many conflicts one after the other are no coincidence. */
    private static final int CONFLICTS_AT_ONCE = 10;

    private static final long LONGEST_CONFLICT_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    /** How long to wait after a failure that could not be noted. */
    private static final long WITHOUT_A_WORD_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final String service;
    private final Outage outage;
    private final Failures failures;
    private final Backoff backoff = new Backoff();
    private @Nullable DatabaseContact contact;
    private int conflictsInARow;

    /** Read by any thread. */
    private volatile @Nullable Failing failing;

    StepResults(String service, Outage outage) {
        this.service = service;
        this.outage = outage;
        failures = new Failures(service);
    }

    /** Notes that the calling thread takes the steps from here on. */
    void begin() {
        contact = DatabaseContact.watch();
    }

    /** Notes that the thread that has called {@link #begin} takes no more steps. */
    void end() {
        contact = null;
        DatabaseContact.unwatch();
    }

    /** Returns what it has failed with since the last success; null if it has not. May be called from any thread. */
    @Nullable Failing failing() {
        return failing;
    }

    /** Notes that what has been done until here counts as done. */
    void progressed() {
        failing = null;
        if (contact != null && contact.take()) {
            outage.succeeded(service);
        } else {
            outage.left(service);
        }
    }

    /** Notes that a step has been taken. */
    void succeeded() {
        progressed();
        conflictsInARow = 0;
        failures.succeeded();
        backoff.reset();
    }

    /** Notes that the service no longer shows how the database is. */
    void left() {
        outage.left(service);
    }

    /** Notes a failure, if there is memory to do so, and returns for how many nanoseconds to wait: hardly, after a conflict. */
    long failed(Throwable failure) {
        try {
            return note(failure);
        } catch (Throwable e) {
            return WITHOUT_A_WORD_NANOS;
        }
    }

    private long note(Throwable failure) {
        if (contact != null) {
            contact.take();
        }
        DatabaseFailure kind = DatabaseFailure.of(failure);
        Failing before = failing;
        failing = new Failing(
                before == null ? System.nanoTime() : before.since(),
                ErrorText.headline(failure),
                kind == DatabaseFailure.OUTAGE);
        if (kind == DatabaseFailure.CONFLICT && ++conflictsInARow <= CONFLICTS_AT_ONCE) {
            log.debug("Thread {} repeats its work after a conflict", service, failure);
            return ThreadLocalRandom.current().nextLong(LONGEST_CONFLICT_PAUSE_NANOS);
        }
        if (kind == DatabaseFailure.OUTAGE) {
            outage.failed(service, failure);
        } else if (DatabaseFailure.isMissingSchema(failure)) {
            outage.schemaMissing(service, failure);
        } else {
            failures.report(kind, failure);
        }
        return backoff.next().toNanos();
    }
}
