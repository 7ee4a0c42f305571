package dev.pgworker.internal.engine.run;

import java.time.Duration;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.store.Claim;

/** The attempts whose handlers run, each until its outcome is on its way. Thread-safe. */
public final class RunningAttempts {

    /**
     * A handler that runs.
     *
     * @param nanos for how long it has been running
     * @param progress how far it has come; null if it has not reported that
     */
    public record LongRun(Claim claim, long nanos, @Nullable Progress progress) {}

    private final Map<Claim, Attempt> running = new ConcurrentHashMap<>();

    void add(Attempt attempt) {
        running.put(attempt.claim(), attempt);
    }

    void remove(Attempt attempt) {
        running.remove(attempt.claim());
    }

    Collection<Attempt> all() {
        return running.values();
    }

    @Nullable Attempt of(Claim claim) {
        return running.get(claim);
    }

    /**
     * Returns the handlers that have been running for so long, or have reported progress, the longest-running first. Leaves out
     * those of direct batches whose jobs are not claimed.
     */
    public List<LongRun> longest(Duration least, int most) {
        if (isEmpty()) {
            return List.of();
        }
        long now = System.nanoTime();
        return all().stream()
                .filter(Attempt::isClaimed)
                .map(attempt -> new LongRun(attempt.claim(), attempt.nanosAt(now), attempt.progress()))
                .filter(run -> run.progress() != null || run.nanos() >= least.toNanos())
                .sorted(Comparator.comparingLong(LongRun::nanos).reversed())
                .limit(most)
                .toList();
    }

    /** Returns true if no handler runs. */
    public boolean isEmpty() {
        return running.isEmpty();
    }

    /** Returns true if a handler calls this, on the thread that runs it. */
    public boolean isOnHandlerThread() {
        return all().stream().anyMatch(Attempt::isOnItsThread);
    }

    /** Returns true if a job runs that has one of the flags. */
    public boolean anyFlagged(Collection<String> flags) {
        return all().stream()
                .anyMatch(attempt -> !Collections.disjoint(attempt.job().flags(), flags));
    }
}
