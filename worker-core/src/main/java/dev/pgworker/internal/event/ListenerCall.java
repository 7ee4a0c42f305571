package dev.pgworker.internal.event;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

import org.slf4j.Logger;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.internal.failure.WorkerLog;

/** Calls one listener and keeps its failures away from the caller. Logs them, but not so often that it does harm. */
final class ListenerCall {

    private static final Logger log = WorkerLog.of(ListenerCall.class);

    private static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(10);

    private final WorkerEventListener listener;
    private final AtomicLong unlogged = new AtomicLong();
    private final AtomicLong logAgainAt = new AtomicLong(System.nanoTime());

    ListenerCall(WorkerEventListener listener) {
        this.listener = listener;
    }

    void deliver(WorkerEvent event) {
        try {
            listener.onEvent(event);
        } catch (Throwable e) {
            failed(event, e);
        }
    }

    private void failed(WorkerEvent event, Throwable error) {
        long now = System.nanoTime();
        long at = logAgainAt.get();
        if (now - at >= 0 && logAgainAt.compareAndSet(at, now + PAUSE_NANOS)) {
            try {
                log.warn(
                        "Listener {} failed on {}; {} earlier failures were not logged",
                        listener.getClass().getName(),
                        event.getClass().getSimpleName(),
                        unlogged.getAndSet(0),
                        error);
            } catch (Throwable e) {
                // The exception is the listener's, too, and a logger may be unable to read it.
                log.warn("Listener {} failed, and so does reading its exception", listener.getClass());
            }
        } else {
            unlogged.incrementAndGet();
        }
    }
}
