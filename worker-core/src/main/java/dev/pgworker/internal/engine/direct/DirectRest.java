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
 * The jobs of direct tasks without a queue that are claimed in the ordinary way: those with keys or large payloads, and suspects. A suspect was in a batch that broke, or has lost a worker: it runs when no other suspect of this worker does, so that
 * one that ends its process is blamed alone. Thread-safe.
 */
final class DirectRest {

    /** More are found again. */
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
    synchronized void add(Collection<Long> left) {
        for (Long id : left) {
            if (ids.size() < MOST && !suspects.containsKey(id)) {
                ids.add(id);
            }
        }
    }

    /** Takes note of jobs to claim one after the other. */
    synchronized void addSuspects(Collection<Long> left) {
        for (Long id : left) {
            if (suspects.size() < MOST) {
                suspects.putIfAbsent(id, null);
            }
            ids.remove(id);
        }
    }

    /** Returns how many jobs are known that no batch is to run. */
    synchronized int size() {
        return ids.size() + suspects.size();
    }

    /** Returns whether there is room for what is to be claimed. */
    boolean hasRoom() {
        return localQueue.free() > 0;
    }

    /** Returns whether no batch is to run this job. */
    synchronized boolean isLeft(long id) {
        return suspects.containsKey(id) || ids.contains(id);
    }

    /**
     * Claims what there is room for. Holds no lock while it asks the database: another chain, which asks what is left, may hold
     * the rows.
     */
    void claim(Collection<String> forbidden) throws SQLException {
        TaskIds served = tasks.ordinary();
        int room = localQueue.free();
        if (served.identifiers().isEmpty() || room <= 0) {
            return;
        }
        List<Long> some = some(room);
        if (!some.isEmpty()) {
            room -= claim(served, forbidden, some).size();
            claimed(some);
        }
        boolean none = true;
        for (int tries = 0; none && room > 0 && tries < MOST_TRIES; tries++) {
            Long suspect = nextSuspect();
            if (suspect == null) {
                return;
            }
            Claim claim = null;
            try {
                for (Job job : claim(served, forbidden, List.of(suspect)).readable()) {
                    claim = Claim.of(job);
                    none = false;
                }
            } finally {
                tried(suspect, claim);
            }
        }
    }

    private synchronized List<Long> some(int most) {
        return ids.stream().limit(most).toList();
    }

    private synchronized void claimed(List<Long> some) {
        some.forEach(ids::remove);
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
        if (claim != null) {
            current = claim;
            return;
        }
        long time = System.nanoTime();
        if (since == null || time - since < PATIENCE_NANOS) {
            suspects.put(suspect, since == null ? Long.valueOf(time) : since);
        }
    }

    private Claimed claim(TaskIds served, Collection<String> forbidden, List<Long> some) throws SQLException {
        return tracker.during(() -> {
            Claimed claimed = store.claimIds(ClaimRequest.of(served, forbidden), some);
            executor.submit(claimed);
            return claimed;
        });
    }
}
