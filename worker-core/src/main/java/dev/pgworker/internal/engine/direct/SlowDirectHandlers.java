package dev.pgworker.internal.engine.direct;

import java.time.Duration;
import java.util.List;

import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.BackgroundService;

/** Ends direct batches without the handler that takes long, so that the other jobs of the batch are free. */
final class SlowDirectHandlers extends BackgroundService {

    private static final long LOOK_NANOS = Duration.ofMillis(50).toNanos();

    private final List<DirectLoop> loops;

    private volatile boolean watching;

    SlowDirectHandlers(List<DirectLoop> loops, Outage outage) {
        super("worker-direct-watch", true, outage);
        this.loops = loops;
    }

    /** Says that handlers run. May be called from any thread. */
    void watch() {
        if (!watching) {
            watching = true;
            wake();
        }
    }

    @Override
    protected void step() throws InterruptedException {
        if (watching) {
            pause(LOOK_NANOS);
            loops.forEach(DirectLoop::releaseSlow);
            watching = false;
            // One that has begun before has said so in vain.
            if (loops.stream().anyMatch(DirectLoop::isRunning)) {
                watching = true;
            }
        } else {
            pause(Long.MAX_VALUE);
        }
    }
}
