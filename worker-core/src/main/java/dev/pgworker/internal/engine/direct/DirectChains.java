package dev.pgworker.internal.engine.direct;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Stream;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.claim.ClaimPermission;
import dev.pgworker.internal.engine.claim.ClaimTracker;
import dev.pgworker.internal.engine.claim.DirectTasks;
import dev.pgworker.internal.engine.claim.DueJobs;
import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.engine.run.JobExecutor;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.lifecycle.WorkSignal;
import dev.pgworker.internal.store.JobStore;

/**
 * The chains of one worker that run direct batches, and what they share; none if it has no direct task. The first does all there is
 * while it keeps up, and the others help. Thread-safe.
 */
public final class DirectChains implements WorkSignal.Receiver {

    final WorkerContext context;
    final ClaimPermission permission;
    final JobStore store;
    final DueJobs due;
    final ClaimTracker tracker;
    final JobExecutor executor;
    final DirectRest rest;

    private final List<DirectLoop> loops = new ArrayList<>();
    private final Watch watch;

    /** Creates the chains, not started. */
    public DirectChains(
            WorkerContext context,
            ClaimPermission permission,
            JobStore store,
            DueJobs due,
            LocalQueue localQueue,
            ClaimTracker tracker,
            JobExecutor executor) {
        this.context = context;
        this.permission = permission;
        this.store = store;
        this.due = due;
        this.tracker = tracker;
        this.executor = executor;
        rest = new DirectRest(permission.tasks(), store.claims(), localQueue, tracker, executor);
        watch = new Watch();
        for (int number = 0;
                number < DirectTasks.CHAINS && !tasks().identifiers().isEmpty();
                number++) {
            loops.add(new DirectLoop(number, this));
        }
    }

    DirectTasks tasks() {
        return permission.tasks().direct();
    }

    /** Publishes an event of this worker, which is made from its id only if somebody listens. */
    void publish(Function<String, WorkerEvent> event) {
        context.publish(() -> event.apply(context.workerId()));
    }

    /** Has a chain look for jobs that has nothing to do; all of them if there is none. */
    @Override
    public void jobsMayBeDue() {
        if (!wakeIdle()) {
            loops.forEach(DirectLoop::jobsMayBeDue);
        }
    }

    /** Has a chain look for jobs that has nothing to do; returns whether there is one. */
    boolean wakeIdle() {
        return loops.stream()
                .filter(DirectLoop::isIdle)
                .findFirst()
                .map(loop -> {
                    loop.jobsMayBeDue();
                    return true;
                })
                .orElse(false);
    }

    /** Has the first chain look for what nobody has announced. */
    public void poll() {
        due.lookForJobs();
        loops.stream().limit(1).forEach(DirectLoop::lookForJobs);
    }

    @Override
    public void tasksMayHaveChanged() {
        jobsMayBeDue();
    }

    @Override
    public void leaseChanged() {
        jobsMayBeDue();
    }

    @Override
    public void capacityFreed() {
        if (rest.isAny()) {
            loops.forEach(DirectLoop::capacityFreed);
        }
    }

    /** Says that handlers run: one that takes long is not to keep its batch. */
    void watch() {
        if (!watch.watching) {
            watch.watching = true;
            watch.jobsRun();
        }
    }

    /** Returns how many handlers run in batches. */
    public int running() {
        return (int) loops.stream().filter(DirectLoop::isRunning).count();
    }

    /** Returns the chains as services. */
    public Stream<BackgroundService> services() {
        return loops.isEmpty() ? Stream.of() : Stream.concat(loops.stream(), Stream.of(watch));
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
            watch.beginStop();
        }
        return ended;
    }

    /** Breaks the batches of the chains that have not ended: their jobs are free. */
    public void abort() {
        watch.beginStop();
        loops.forEach(DirectLoop::abort);
    }

    /** Ends batches without the handler that takes long, so that the other jobs of the batch are free. */
    private final class Watch extends BackgroundService {

        private static final long LOOK_NANOS = Duration.ofMillis(50).toNanos();

        private volatile boolean watching;

        Watch() {
            super("worker-direct-watch", true, context.outage());
        }

        private void jobsRun() {
            wake();
        }

        @Override
        protected void step() throws InterruptedException {
            if (!watching) {
                pause(Long.MAX_VALUE);
                return;
            }
            pause(LOOK_NANOS);
            loops.forEach(DirectLoop::releaseSlow);
            watching = false;
            // One that has begun before has said so in vain.
            if (running() > 0) {
                watching = true;
            }
        }
    }
}
