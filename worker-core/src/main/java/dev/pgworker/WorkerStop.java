package dev.pgworker;

import java.time.Duration;
import java.util.Objects;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.Activity;
import dev.pgworker.internal.lifecycle.Service;

/**
 * Ends a run in the order that loses nothing: what claims jobs, then the handlers, the outcomes, and last what proves the worker's life.
 * Each step is bounded in time. Called by one thread.
 */
final class WorkerStop {

    private static final Logger log = WorkerLog.of(WorkerStop.class);

    /** How long what claims jobs may take to notice that it is stopped, all together. */
    private static final Duration CLAIMING_LIMIT = Duration.ofSeconds(3);

    /** The same for what writes outcomes and proves the worker's life. */
    private static final Duration LAST_LIMIT = Duration.ofSeconds(2);

    /** How long interrupted handlers may take to end before their jobs are given back regardless. */
    private static final Duration AFTER_INTERRUPT = Duration.ofSeconds(1);

    /** How long outcomes may take to be written, if the stop has that much time left. */
    private static final Duration FLUSH_LIMIT = Duration.ofSeconds(10);

    /** How long the last record of what the worker has done may take, after everything else has been written. */
    private static final Duration RECORD_LIMIT = Duration.ofMillis(500);

    /** How long listeners may take for the last events. */
    private static final Duration EVENTS_LIMIT = Duration.ofSeconds(2);

    /** What a busy machine may add to the steps of a stop. */
    private static final Duration MARGIN = Duration.ofSeconds(1);

    /** How long a stop may wait for each of two answers to what the worker still holds. */
    private static final Duration LAST_LOOK_LIMIT = Duration.ofMillis(700);

    /** How soon a stop is noticed by a lost worker that waits for its database. */
    private static final Duration STOP_CHECK = Duration.ofMillis(100);

    private final WorkerServices services;
    private final Request request;
    private final Activity progress;

    /** When a run has to be over. */
    interface Request {

        /** Returns false while only the worker itself, which is lost, ends its run. */
        boolean isMade();

        /** Returns when the requested stop has to be over, by {@link System#nanoTime}. */
        long stopBy();
    }

    /**
     * Creates the end of a run.
     *
     * @param progress told while a lost worker waits for its database
     */
    WorkerStop(WorkerServices services, Request request, Activity progress) {
        this.services = services;
        this.request = request;
        this.progress = progress;
    }

    /**
     * Ends the run whatever happens: memory may be short.
     *
     * @param grace how long handlers may continue
     */
    void run(Duration grace) {
        try {
            stopClaiming();
            finishAndFlush(grace);
        } catch (RuntimeException | Error e) {
            services.heartbeat.stayRegistered();
            log.error(
                    "Worker {} did not stop cleanly; jobs that it still holds stay locked until they are recovered",
                    services.context.workerId(),
                    e);
        } finally {
            end();
        }
    }

    private void stopClaiming() {
        long end = System.nanoTime() + CLAIMING_LIMIT.toNanos();
        if (services.vacuum != null) {
            services.vacuum.cancel();
        }
        services.direct.beginStop();
        services.claimLoop.beginStop();
        services.claims.cancel();
        Stream<@Nullable Service> others = Stream.of(
                services.limits,
                services.history,
                services.snapshots,
                services.unservedTasks,
                services.vacuum,
                services.listener,
                services.migrations,
                services.claimLoop,
                services.looks,
                services.reconciler);
        stopAll(CLAIMING_LIMIT, Stream.concat(services.recurring.all(), others).toArray(Service[]::new));
        services.periodic.stop(Duration.ofNanos(Math.max(0, end - System.nanoTime())));
        services.executor.close();
    }

    /** Stops services at the same time, and waits for all of them together no longer than the limit. */
    private static void stopAll(Duration limit, @Nullable Service... stopped) {
        long end = System.nanoTime() + limit.toNanos();
        Stream.of(stopped).filter(Objects::nonNull).forEach(Service::beginStop);
        Stream.of(stopped)
                .filter(Objects::nonNull)
                .forEach(service -> service.stop(Duration.ofNanos(Math.max(0, end - System.nanoTime()))));
    }

    private void finishAndFlush(Duration grace) {
        boolean written = false;
        try {
            long graceEnd = System.nanoTime() + grace.toNanos();
            services.executor.finish(grace, AFTER_INTERRUPT);
            finishDirect(Duration.ofNanos(Math.max(0, graceEnd - System.nanoTime())));
            while (!request.isMade()
                    && services.context.outage().isPresent()
                    && !services.completer.awaitWritten(STOP_CHECK)) {
                // A lost worker has time: no worker can take its jobs before the database is back.
                progress.progress();
            }
            Duration limit = flushLimit();
            written = services.completer.awaitWritten(limit);
            if (!written) {
                log.error(
                        "Some outcomes could not be written, or queues freed, within {}; their jobs and queues stay locked"
                                + " until they are recovered",
                        limit);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            log.warn("The stop was interrupted; jobs that are running stay locked until they are recovered");
        }
        // What may still be claimed, or was unnoticed, is taken from this worker when its heartbeats end.
        if (!written || !knowsToHoldNothing()) {
            services.heartbeat.stayRegistered();
        }
    }

    /** Waits for the handlers of direct batches as for others; the jobs of a batch that does not end are free. */
    private void finishDirect(Duration grace) {
        if (!services.direct.awaitEnd(grace)) {
            services.executor.interruptAll();
            if (!services.direct.awaitEnd(AFTER_INTERRUPT)) {
                services.executor.abandonRunning();
                services.direct.abort();
            }
        }
    }

    /** Returns how long outcomes may take to be written, so that a stop leaves time for what comes after. */
    private Duration flushLimit() {
        if (!request.isMade()) {
            return FLUSH_LIMIT;
        }
        Duration left = Duration.ofNanos(request.stopBy() - System.nanoTime())
                .minus(LAST_LIMIT)
                .minus(RECORD_LIMIT)
                .minus(EVENTS_LIMIT)
                .minus(LAST_LOOK_LIMIT.multipliedBy(2))
                .minus(MARGIN);
        return left.compareTo(FLUSH_LIMIT) < 0 ? left : FLUSH_LIMIT;
    }

    /** A claim may have been made twice without any sign of it. */
    private boolean knowsToHoldNothing() {
        boolean doubted = services.reconciler.isInDoubt();
        if (!doubted && services.context.outage().isPresent()) {
            return true;
        }
        boolean looked = services.reconciler.lookForTheLastTime(LAST_LOOK_LIMIT);
        return looked || !(doubted || services.reconciler.isInDoubt());
    }

    private void end() {
        stopAll(LAST_LIMIT, services.cancels, services.completer, services.heartbeat, services.watchdog);
        stopAll(RECORD_LIMIT, services.record);
        services.executor.shutDown();
        services.flags.shutDown();
        services.context.events().publish(new WorkerEvent.WorkerStopped(services.context.workerId()));
        services.context.events().close(EVENTS_LIMIT);
    }
}
