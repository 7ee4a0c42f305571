package dev.pgworker.internal.engine.direct;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.claim.ClaimPermission;
import dev.pgworker.internal.engine.claim.ClaimTracker;
import dev.pgworker.internal.engine.claim.DirectTasks;
import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.engine.run.JobExecutor;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.lifecycle.WorkSignal;
import dev.pgworker.internal.store.JobStore;

/**
 * The chains of one worker that run direct batches; none if it has no direct task. The first does all there is while it keeps
 * up, and the others help. Thread-safe.
 */
public final class DirectChains implements WorkSignal.Receiver, DirectContext.Others {

    private final List<DirectLoop> loops = new ArrayList<>();
    private final SlowDirectHandlers slowHandlers;

    /** Creates the chains, not started. */
    public DirectChains(
            WorkerContext context,
            ClaimPermission permission,
            JobStore store,
            LocalQueue localQueue,
            ClaimTracker tracker,
            JobExecutor executor,
            Duration pollInterval) {
        slowHandlers = new SlowDirectHandlers(loops, context.outage());
        if (permission.tasks().direct().identifiers().isEmpty()) {
            return;
        }
        DirectRest rest = new DirectRest(permission.tasks(), store.claims(), localQueue, tracker, executor);
        DirectContext shared = new DirectContext(context, permission, store, tracker, executor, rest, this);
        for (int number = 0; number < DirectTasks.CHAINS; number++) {
            loops.add(new DirectLoop(number, shared, pollInterval));
        }
    }

    // What one chain says to the others

    @Override
    public int count() {
        return loops.size();
    }

    @Override
    public boolean isFirstIdle() {
        return loops.get(0).isIdle();
    }

    @Override
    public void helpWanted() {
        loops.stream().filter(DirectLoop::isIdle).findFirst().ifPresent(DirectLoop::jobsMayBeDue);
    }

    @Override
    public void watch() {
        slowHandlers.watch();
    }

    @Override
    public void jobsMayBeDue() {
        for (DirectLoop loop : loops) {
            if (loop.isIdle()) {
                loop.jobsMayBeDue();
                return;
            }
        }
        loops.forEach(DirectLoop::jobsMayBeDue);
    }

    @Override
    public void tasksMayHaveChanged() {
        jobsMayBeDue();
    }

    @Override
    public void leaseChanged() {
        capacityFreed();
        jobsMayBeDue();
    }

    @Override
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
