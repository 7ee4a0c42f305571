package dev.pgworker.internal.engine.direct;

import java.sql.SQLException;
import java.util.Collection;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;

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

/**
 * The jobs of direct tasks without a queue that are claimed in the ordinary way: those with keys or large payloads, and suspects. A
 * suspect was in a batch that broke, or has lost a worker: it runs when no other suspect of this worker does, so that
 * one that ends its process is blamed alone. What cannot be claimed is found by a look at all jobs. Thread-safe.
 */
final class DirectRest {

    private static final int MOST = 10_000;

    /** So many claims without a result are made one after the other. */
    private static final int MOST_TRIES = 100;

    private final ServedTasks tasks;
    private final ClaimStore store;
    private final LocalQueue localQueue;
    private final ClaimTracker tracker;
    private final JobExecutor executor;

    @GuardedBy("this") private final Set<Long> ids = new LinkedHashSet<>();

    @GuardedBy("this") private final Set<Long> suspects = new LinkedHashSet<>();

    /** The suspect that runs, or ran last. */
    @GuardedBy("this") private @Nullable Claim current;

    /** Whether some thread is claiming. */
    private final AtomicBoolean claiming = new AtomicBoolean();

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
    }

    /** Takes note of jobs to claim one after the other. */
    synchronized void addSuspects(Collection<Long> some) {
        if (suspects.size() < MOST) {
            suspects.addAll(some);
        }
    }

    /** Returns whether there are jobs to claim. */
    synchronized boolean isAny() {
        return !ids.isEmpty() || !suspects.isEmpty();
    }

    /** Returns whether no more jobs are to be added until some have been claimed. */
    synchronized boolean isFull() {
        return ids.size() >= MOST;
    }

    /** Claims what there is room for, and one suspect if none runs. */
    void claim(Collection<String> forbidden) throws SQLException {
        if (!claiming.compareAndSet(false, true)) {
            return;
        }
        int room = localQueue.reserve();
        try {
            int left = room;
            for (int tries = 0; left > 0 && tries < MOST_TRIES; tries++) {
                Long suspect = nextSuspect();
                Set<Long> next = new LinkedHashSet<>(suspect == null ? Set.of() : Set.of(suspect));
                addSome(next, left);
                if (next.isEmpty()) {
                    return;
                }
                left -= claim(forbidden, next, suspect).size();
            }
        } finally {
            localQueue.unreserve(room);
            claiming.set(false);
        }
    }

    private synchronized @Nullable Long nextSuspect() {
        if (current != null && !localQueue.contains(current)) {
            current = null;
        }
        if (current != null || suspects.isEmpty()) {
            return null;
        }
        Long next = suspects.iterator().next();
        suspects.remove(next);
        return next;
    }

    private synchronized void addSome(Set<Long> next, int most) {
        for (Iterator<Long> left = ids.iterator(); left.hasNext() && next.size() < most; left.remove()) {
            next.add(left.next());
        }
    }

    private Claimed claim(Collection<String> forbidden, Collection<Long> next, @Nullable Long suspect)
            throws SQLException {
        return tracker.during(() -> {
            Claimed claimed = store.claimIds(ClaimRequest.of(tasks.ordinary(), forbidden), next);
            claimed.readable().stream()
                    .filter(job -> suspect != null && job.id() == suspect)
                    .forEach(job -> runs(Claim.of(job)));
            executor.submit(claimed);
            return claimed;
        });
    }

    private synchronized void runs(Claim suspect) {
        current = suspect;
    }
}
