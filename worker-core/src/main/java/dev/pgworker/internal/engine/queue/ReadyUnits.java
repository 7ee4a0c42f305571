package dev.pgworker.internal.engine.queue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.PriorityQueue;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.engine.queue.Unit.LocalJob;
import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.ClaimedJob;

/**
 * The units that no handler has, in the order in which they start, and how many jobs wait in them and behind those that run. Guarded by the
 * {@link LocalQueue} that it belongs to.
 */
final class ReadyUnits {

    private final PriorityQueue<Unit> ready = new PriorityQueue<>();

    /** Jobs that wait for a handler: those of the ready units, and behind those that run. */
    private int waiting;

    /** Whether a unit has become ready since a job was last started. */
    private boolean anyStartable;

    /** When the first of them did, by {@link System#nanoTime}. */
    private long startableSince;

    int size() {
        return ready.size();
    }

    /** Returns how many jobs wait. */
    int waiting() {
        return waiting;
    }

    /** Has a job wait behind those of its unit, which is not ready by that. */
    void append(LocalJob local) {
        local.waits = true;
        local.unit.waiting.add(local);
        waiting++;
    }

    /** Has a unit wait for a handler, if it has jobs. */
    void add(Unit unit) {
        if (unit.waiting.isEmpty()) {
            return;
        }
        ready.add(unit);
        if (!anyStartable) {
            anyStartable = true;
            startableSince = System.nanoTime();
        }
    }

    /** Returns the unit that is the first to start, for the caller to take a job of it; null if there is none. */
    @Nullable Unit poll() {
        return ready.poll();
    }

    /** Takes the first job out of a unit that is not ready, to start it. */
    LocalJob start(Unit unit) {
        LocalJob local = unit.waiting.remove();
        waiting--;
        local.waits = false;
        anyStartable = !ready.isEmpty();
        startableSince = System.nanoTime();
        return local;
    }

    /** Takes all jobs out of a unit that have not been handed out. */
    List<LocalJob> takeAll(Unit unit) {
        List<LocalJob> taken = new ArrayList<>(unit.waiting);
        taken.forEach(local -> local.waits = false);
        unit.waiting.clear();
        waiting -= taken.size();
        ready.remove(unit);
        return taken;
    }

    /** Takes a job out that waits. */
    void take(LocalJob local) {
        local.waits = false;
        waiting--;
        local.unit.waiting.remove(local);
        if (local.unit.waiting.isEmpty()) {
            ready.remove(local.unit);
        }
    }

    /** Adds claims of ready jobs that have no payload yet, until there are so many. */
    void addWithoutPayload(List<Claim> claims, int most) {
        for (Unit unit : ready) {
            for (LocalJob local : unit.waiting) {
                if (claims.size() >= most) {
                    return;
                } else if (ClaimedJob.lacksPayload(local.job)) {
                    claims.add(Claim.of(local.job));
                }
            }
        }
    }

    /** Returns how long units have been ready without a job having started; zero if none has become ready since. */
    Duration sinceStartable() {
        return anyStartable ? Duration.ofNanos(System.nanoTime() - startableSince) : Duration.ZERO;
    }
}
