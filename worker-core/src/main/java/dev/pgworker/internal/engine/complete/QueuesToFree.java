package dev.pgworker.internal.engine.complete;

import java.sql.SQLException;
import java.time.Duration;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.WorkSignal;
import dev.pgworker.internal.store.HeldQueue;
import dev.pgworker.internal.store.OutcomeStore;

/**
 * The queues of which nothing is left here, until they are free. A long lock of one's row holds up that queue, and
 * others that are to be freed for a moment. Owned by {@code worker-complete}, but for methods whose comment allows
 * others.
 */
final class QueuesToFree {

    private static final Logger log = WorkerLog.of(QueuesToFree.class);

    /** How long to wait before those are tried again that could not be freed. */
    static final Duration PAUSE = Duration.ofMillis(320);

    /** A transaction that holds the row of a queue for so long is worth a word. */
    private static final Duration KEPT_FOR_LONG = Duration.ofSeconds(10);

    private final OutcomeStore store;
    private final WorkSignal signal;

    /** By their ids. */
    private final Map<Integer, HeldQueue> queues = new LinkedHashMap<>();

    /** Since when one cannot be freed, and when to try again, by {@link System#nanoTime}. */
    private long keptSince;

    private long tryAt = System.nanoTime();
    private boolean keptLogged;

    /** Whether one may still be locked. */
    @GuardedBy("this") private boolean mayBeLocked;

    QueuesToFree(OutcomeStore store, WorkSignal signal) {
        this.store = store;
        this.signal = signal;
    }

    boolean isEmpty() {
        return queues.isEmpty();
    }

    /** Notes that there may be some soon: their jobs are about to be settled. */
    void expect() {
        note(true);
    }

    private synchronized void note(boolean locked) {
        mayBeLocked = locked;
        notifyAll();
    }

    /** Returns whether one may still be locked. May be called from any thread. */
    synchronized boolean mayBeLocked() {
        return mayBeLocked;
    }

    /**
     * Waits until none is locked, but no longer than until then, by {@link System#nanoTime}; returns whether none is. May be called from
     * any thread.
     */
    synchronized boolean await(long deadline) throws InterruptedException {
        for (long left = deadline - System.nanoTime(); mayBeLocked && left > 0; left = deadline - System.nanoTime()) {
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
        return !mayBeLocked;
    }

    void add(Collection<HeldQueue> over) {
        for (HeldQueue queue : over) {
            if (queues.isEmpty()) {
                keptSince = System.nanoTime();
                keptLogged = false;
            }
            queues.put(queue.id(), queue);
        }
        note(!queues.isEmpty());
    }

    /**
     * Frees them, as far as that can be done now.
     *
     * @throws SQLException if the database refuses that, or cannot be used; they are tried again
     */
    void free() throws SQLException {
        if (queues.isEmpty() || System.nanoTime() - tryAt < 0) {
            return;
        }
        Set<Integer> left = queues.keySet();
        try {
            left = store.free(List.copyOf(queues.values()));
        } finally {
            if (queues.keySet().retainAll(left)) {
                signal.jobsMayBeDue();
            }
            if (!queues.isEmpty()) {
                notePause();
            }
            note(!queues.isEmpty());
        }
    }

    private void notePause() {
        long now = System.nanoTime();
        tryAt = now + PAUSE.toNanos();
        if (!keptLogged && now - keptSince > KEPT_FOR_LONG.toNanos()) {
            keptLogged = true;
            log.warn(
                    "Queues {} stay locked: another transaction has held their rows for {} s, or a trigger refuses the change. Their"
                            + " jobs wait until it ends; others run",
                    queues.values().stream().map(HeldQueue::name).toList(),
                    KEPT_FOR_LONG.toSeconds());
        }
    }
}
