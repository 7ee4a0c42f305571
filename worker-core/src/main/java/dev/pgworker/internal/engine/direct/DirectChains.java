package dev.pgworker.internal.engine.direct;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

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

    private final DirectContext shared;
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
        DirectRest rest = new DirectRest(permission.tasks(), store.claims(), localQueue, tracker, executor);
        shared = new DirectContext(context, permission, store.direct(), due, tracker, executor, rest);
        watch = new Watch();
        for (int number = 1;
                number <= DirectTasks.CHAINS && !shared.tasks().identifiers().isEmpty();
                number++) {
            loops.add(new DirectLoop(number, shared, watch::jobsRun, this::wakeIdle));
        }
    }

    /** Has a chain look for jobs that has nothing to do; all of them if there is none. */
    @Override
    public void jobsMayBeDue() {
        if (!wakeIdle()) {
            loops.forEach(DirectLoop::jobsMayBeDue);
        }
    }

    /** Has a chain look for jobs that has nothing to do; returns whether there is one. */
    private boolean wakeIdle() {
        return loops.stream()
                .filter(DirectLoop::isIdle)
                .findFirst()
                .map(DirectLoop::jobsMayBeDue)
                .isPresent();
    }

    /** Has a chain look for what was not announced, or take jobs where that takes long. */
    public void poll() {
        shared.due().lookForJobs();
        if (shared.due().nanosUntilLook() == Long.MAX_VALUE) {
            jobsMayBeDue();
        } else {
            loops.stream().filter(DirectLoop::isIdle).limit(1).forEach(DirectLoop::lookAgain);
        }
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
        if (shared.rest().isAny()) {
            loops.forEach(DirectLoop::lookAgain);
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
            super("worker-direct-watch", true, shared.worker().outage());
        }

        /** Notes that handlers run: one that takes long is not to keep its batch. May be called from any thread. */
        private void jobsRun() {
            if (!watching) {
                watching = true;
                wake();
            }
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
            // A batch that began just before has seen a watch, and has not started one.
            if (running() > 0) {
                watching = true;
            }
        }
    }
}
