package dev.pgworker.engine;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;
import dev.pgworker.store.JobStore;
import dev.pgworker.store.JobStore.Claim;
import dev.pgworker.store.JobStore.ClaimRequest;
import dev.pgworker.store.JobStore.Claimed;
import dev.pgworker.store.JobStore.Start;

/**
 * The jobs of direct tasks without a queue that are claimed in the ordinary way: those with keys or large payloads, and suspects. A suspect was in a batch that broke, or has lost a worker: it runs when no other suspect of this worker does, so that
 * one that ends its process is blamed alone. Safe for use by many threads.
 */
final class DirectRest {

    /** More are found again. */
    private static final int MOST = 10_000;

    /** Of jobs without a queue only those asked for are looked at. */
    private static final TreeMap<Integer, JobStore.Place> NOWHERE = new TreeMap<>();

    private final JobStore store;
    private final LocalQueue localQueue;
    private final ClaimAudit audit;
    private final JobExecutor executor;

    @GuardedBy("this") private final Set<Long> ids = new LinkedHashSet<>();

    @GuardedBy("this") private final Set<Long> suspects = new LinkedHashSet<>();

    /** The suspect that runs, or ran last. */
    @GuardedBy("this") private @Nullable Claim current;

    DirectRest(JobStore store, LocalQueue localQueue, ClaimAudit audit, JobExecutor executor) {
        this.store = store;
        this.localQueue = localQueue;
        this.audit = audit;
        this.executor = executor;
    }

    /** Takes note of jobs to claim. */
    synchronized void add(Collection<Long> left) {
        addTo(ids, left);
    }

    /** Takes note of jobs to claim one after the other. */
    synchronized void addSuspects(Collection<Long> left) {
        addTo(suspects, left);
        ids.removeAll(suspects);
    }

    private static void addTo(Set<Long> set, Collection<Long> added) {
        for (Long id : added) {
            if (set.size() < MOST) {
                set.add(id);
            }
        }
    }

    /** Returns how many jobs are known that no batch is to run. */
    synchronized int size() {
        return ids.size() + suspects.size();
    }

    /** Returns whether no batch is to run this job. */
    synchronized boolean isLeft(long id) {
        return suspects.contains(id) || ids.contains(id);
    }

    /**
     * Claims what there is room for.
     *
     * @param tasks all tasks of the worker, so that jobs of queues that come first keep their order
     */
    synchronized void claim(JobStore.Tasks tasks, Collection<String> forbidden) throws SQLException {
        int room = localQueue.free();
        if (tasks.identifiers().isEmpty()) {
            return;
        }
        if (room > 0 && !ids.isEmpty()) {
            List<Long> some = ids.stream().limit(room).toList();
            room -= claim(tasks, room, forbidden, some).size();
            some.forEach(ids::remove);
        }
        if (current != null && !localQueue.contains(current)) {
            current = null;
        }
        while (room > 0 && current == null && !suspects.isEmpty()) {
            Long id = suspects.iterator().next();
            for (Job job : claim(tasks, 1, forbidden, List.of(id)).jobs()) {
                // A job in a queue may have come first.
                current = job.id() == id ? Claim.of(job) : current;
                room--;
            }
            suspects.remove(id);
        }
    }

    private Claimed claim(JobStore.Tasks tasks, int wanted, Collection<String> forbidden, List<Long> strays)
            throws SQLException {
        Start start = new Start(NOWHERE, new ArrayList<>(strays));
        return audit.during(() -> {
            Claimed claimed = store.claim(
                    tasks,
                    new ClaimRequest(
                            wanted,
                            localQueue.freeBytes(),
                            forbidden,
                            localQueue::runOf,
                            false,
                            start,
                            JobStore.Chain.WHOLE));
            executor.submit(claimed);
            return claimed;
        });
    }
}
