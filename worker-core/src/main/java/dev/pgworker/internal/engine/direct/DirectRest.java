package dev.pgworker.internal.engine.direct;

import java.sql.SQLException;
import java.time.Duration;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.engine.claim.ClaimTracker;
import dev.pgworker.internal.engine.claim.ServedTasks;
import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.engine.run.JobExecutor;
import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.ClaimRequest;
import dev.pgworker.internal.store.ClaimStore;
import dev.pgworker.internal.store.Claimed;
import dev.pgworker.internal.store.TaskIds;
import dev.pgworker.job.Job;

/**
 * The jobs of direct tasks without a queue that are claimed in the ordinary way: those with keys or large payloads, and suspects. A
 * suspect was in a batch that broke, or has lost a worker: it runs when no other suspect of this worker does, so that
 * one that ends its process is blamed alone. Thread-safe.
 */
final class DirectRest {

    /** More are found again by a look at all jobs. */
    private static final int MOST = 10_000;

    /** So many suspects are tried one after the other until one can be claimed. */
    private static final int MOST_TRIES = 8;

    /** Whoever holds a suspect for longer, or has removed it, is left alone with it. */
    private static final long PATIENCE_NANOS = Duration.ofSeconds(10).toNanos();

    private final ServedTasks tasks;
    private final ClaimStore store;
    private final LocalQueue localQueue;
    private final ClaimTracker tracker;
    private final JobExecutor executor;

    @GuardedBy("this") private final Set<Long> ids = new LinkedHashSet<>();

    /** Since when, by {@link System#nanoTime}, each could not be claimed; null before it has been tried. */
    @GuardedBy("this") private final Map<Long, @Nullable Long> suspects = new LinkedHashMap<>();

    /** The suspect that runs, or ran last. */
    @GuardedBy("this") private @Nullable Claim current;

    /** Whether some thread is claiming a suspect. */
    @GuardedBy("this") private boolean claiming;

    DirectRest(ServedTasks tasks, ClaimStore store, LocalQueue localQueue, ClaimTracker tracker, JobExecutor executor) {
        this.tasks = tasks;
        this.store = store;
        this.localQueue = localQueue;
        this.tracker = tracker;
        this.executor = executor;
    }

    /** Takes note of jobs to claim. */
    synchronized void add(Collection<Long> some) {
        ids.addAll(some);
        ids.removeAll(suspects.keySet());
    }

    /** Takes note of jobs to claim one after the other. */
    synchronized void addSuspects(Collection<Long> some) {
        if (suspects.size() < MOST) {
            some.forEach(id -> suspects.putIfAbsent(id, null));
        }
        ids.removeAll(some);
    }

    /** Returns whether no batch is to run this job. */
    synchronized boolean isSuspect(long id) {
        return suspects.containsKey(id);
    }

    /** Returns whether there are jobs to claim. */
    synchronized boolean isAny() {
        return !ids.isEmpty() || !suspects.isEmpty();
    }

    /** Returns whether no more jobs are to be added until some have been claimed. */
    synchronized boolean isFull() {
        return ids.size() >= MOST;
    }

    /** Claims what there is room for. Another chain may hold the rows, and ask what is left meanwhile. */
    void claim(Collection<String> forbidden) throws SQLException {
        int room = localQueue.reserve();
        try {
            if (room > 0) {
                List<Long> some = some(room);
                int claimed = some.isEmpty() ? 0 : claim(forbidden, some).size();
                if (claimed < room) {
                    claimSuspect(forbidden);
                }
            }
        } finally {
            localQueue.unreserve(room);
        }
    }

    private synchronized List<Long> some(int most) {
        List<Long> some = ids.stream().limit(most).toList();
        some.forEach(ids::remove);
        return some;
    }

    private void claimSuspect(Collection<String> forbidden) throws SQLException {
        Claim claim = null;
        for (int tries = 0; claim == null && tries < MOST_TRIES; tries++) {
            Long suspect = nextSuspect();
            if (suspect == null) {
                return;
            }
            try {
                for (Job job : claim(forbidden, List.of(suspect)).readable()) {
                    claim = Claim.of(job);
                }
            } finally {
                tried(suspect, claim);
            }
        }
    }

    /** Returns the next suspect to claim; null if there is none, or another one runs or is being claimed. */
    private synchronized @Nullable Long nextSuspect() {
        if (current != null && !localQueue.contains(current)) {
            current = null;
        }
        if (claiming || current != null || suspects.isEmpty()) {
            return null;
        }
        claiming = true;
        return suspects.keySet().iterator().next();
    }

    /** Forgets a suspect that is claimed, or has been gone or held by somebody for long; others follow one that is held. */
    private synchronized void tried(Long suspect, @Nullable Claim claim) {
        claiming = false;
        Long since = suspects.remove(suspect);
        long time = System.nanoTime();
        if (claim != null) {
            current = claim;
        } else if (since == null || time - since < PATIENCE_NANOS) {
            suspects.put(suspect, since == null ? Long.valueOf(time) : since);
        }
    }

    private Claimed claim(Collection<String> forbidden, List<Long> some) throws SQLException {
        TaskIds served = tasks.ordinary();
        return tracker.during(() -> {
            Claimed claimed = store.claimIds(ClaimRequest.of(served, forbidden), some);
            executor.submit(claimed);
            return claimed;
        });
    }
}
