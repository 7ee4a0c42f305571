package dev.pgworker.internal.engine;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.store.DirectStore;
import dev.pgworker.internal.store.JobStore;

/**
 * The chains of one worker that run direct batches; none if it has no direct task. The first does all there is while it keeps
 * up, and the others help. Safe for use by many threads.
 */
public final class DirectChains {

    /** One lets its server or its process wait; with more than two each has half a core at best. */
    private static final int COUNT = 2;

    private final List<DirectLoop> loops = new ArrayList<>();
    private final SlowDirectHandlers slowHandlers;

    /**
     * Creates the chains, not started.
     *
     * @param identifiers of the direct tasks
     * @param onSuspension called when their jobs are to be claimed as those of other tasks, or no longer are
     */
    public DirectChains(
            String workerId,
            Set<String> identifiers,
            Fetcher fetcher,
            JobStore store,
            DirectStore directStore,
            LocalQueue localQueue,
            Reconciler audit,
            JobExecutor executor,
            JobCompleter completer,
            Ownership ownership,
            CurrentFlags flags,
            Duration pollInterval,
            Runnable onSuspension,
            WorkerEvents events,
            Outage outage) {
        slowHandlers = new SlowDirectHandlers(loops, outage);
        if (identifiers.isEmpty()) {
            return;
        }
        DirectTasks direct = new DirectTasks(identifiers, COUNT, onSuspension);
        fetcher.leave(direct);
        DirectRest rest = new DirectRest(store, localQueue, audit, executor);
        for (int number = 0; number < COUNT; number++) {
            loops.add(new DirectLoop(
                    workerId,
                    number,
                    this,
                    direct,
                    rest,
                    fetcher,
                    store,
                    directStore,
                    localQueue,
                    audit,
                    executor,
                    completer,
                    ownership,
                    flags,
                    pollInterval,
                    events,
                    outage));
        }
    }

    int count() {
        return loops.size();
    }

    boolean isFirstIdle() {
        return loops.get(0).isIdle();
    }

    /** Has another chain look for jobs, if one has nothing to do. */
    void helpWanted() {
        loops.stream().filter(DirectLoop::isIdle).findFirst().ifPresent(DirectLoop::jobsMayBeDue);
    }

    /** Says that handlers run: one that takes long is not to keep its batch. */
    void watch() {
        slowHandlers.watch();
    }

    /** Says that there may be a job to run. */
    public void jobsMayBeDue() {
        for (DirectLoop loop : loops) {
            if (loop.isIdle()) {
                loop.jobsMayBeDue();
                return;
            }
        }
        loops.forEach(DirectLoop::jobsMayBeDue);
    }

    /** Says that there is room for claimed jobs, or that the worker may run jobs from here on. */
    public void capacityFreed() {
        loops.forEach(DirectLoop::capacityFreed);
    }

    /** Returns how many handlers run in batches. */
    public int running() {
        return (int) loops.stream().filter(DirectLoop::isRunning).count();
    }

    /** Returns the chains as services. */
    public Stream<BackgroundService> services() {
        return loops.isEmpty() ? Stream.of() : Stream.concat(loops.stream(), Stream.of(slowHandlers));
    }

    /** Starts the chains. */
    public void start() {
        services().forEach(BackgroundService::start);
    }

    /** Has every chain end when the handler at hand has, and its batch is written. Returns at once. */
    public void beginStop() {
        loops.forEach(DirectLoop::beginStop);
    }

    /** Waits until all chains have ended; returns whether they have. */
    public boolean awaitEnd(Duration limit) {
        long end = System.nanoTime() + limit.toNanos();
        boolean ended = true;
        for (DirectLoop loop : loops) {
            ended &= loop.stop(Duration.ofNanos(Math.max(0, end - System.nanoTime())));
        }
        if (ended) {
            slowHandlers.beginStop();
        }
        return ended;
    }

    /** Breaks the batches of the chains that have not ended: their jobs are free. */
    public void abort() {
        slowHandlers.beginStop();
        loops.forEach(DirectLoop::abort);
    }
}
