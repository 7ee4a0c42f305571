package dev.pgworker.internal.engine.direct;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;

import dev.pgworker.event.WorkerEvent;
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
 * up, and the others help. Safe for use by many threads.
 */
public final class DirectChains implements WorkSignal.Receiver {

    private final WorkerContext context;
    private final ClaimPermission permission;
    private final JobStore store;
    private final ClaimTracker tracker;
    private final JobExecutor executor;
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
        this.context = context;
        this.permission = permission;
        this.store = store;
        this.tracker = tracker;
        this.executor = executor;
        slowHandlers = new SlowDirectHandlers(loops, context.outage());
        if (tasks().identifiers().isEmpty()) {
            return;
        }
        DirectRest rest = new DirectRest(permission.tasks(), store.claims(), localQueue, tracker, executor);
        for (int number = 0; number < DirectTasks.CHAINS; number++) {
            loops.add(new DirectLoop(number, this, rest, pollInterval));
        }
    }

    // What all chains share

    WorkerContext context() {
        return context;
    }

    ClaimPermission permission() {
        return permission;
    }

    DirectTasks tasks() {
        return permission.tasks().direct();
    }

    JobStore store() {
        return store;
    }

    ClaimTracker tracker() {
        return tracker;
    }

    JobExecutor executor() {
        return executor;
    }

    /** Publishes an event, which is made only if somebody listens. */
    void publish(Supplier<WorkerEvent> event) {
        context.publish(event);
    }

    // What one chain says to the others

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
