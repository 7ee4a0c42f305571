package dev.pgworker;

import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.scheduling.config.ScheduledTask;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.Activity;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.lifecycle.Failing;
import dev.pgworker.internal.lifecycle.Lease;
import dev.pgworker.internal.lifecycle.Service;

/** One run of a worker, from start to stop, under one id. Ends once, by a stop or because the worker is lost. */
final class RunningWorker {

    private static final Logger log = WorkerLog.of(RunningWorker.class);

    private final String id = "pgworker-" + randomHex();
    private final WorkerParts parts;
    private final WorkerServices services;
    private final Activity abandoning = new Activity();
    private final StopRequest request = new StopRequest();
    private final WorkerStop stop;
    private final long createdAt = System.nanoTime();

    @GuardedBy("this") private boolean ended;

    /** Made before the lock is asked for, so that the thread that has it hurries. */
    private static final class StopRequest implements WorkerStop.Request {

        private volatile boolean made;
        private volatile long stopBy;

        void make(Duration limit) {
            stopBy = System.nanoTime() + limit.toNanos();
            made = true;
        }

        @Override
        public boolean isMade() {
            return made;
        }

        @Override
        public long stopBy() {
            return stopBy;
        }
    }

    /**
     * Wires a run.
     *
     * @param onLost called with this when others may have declared the worker dead; must return soon
     * @param onBreakingMigration called when this worker cannot continue with the schema
     */
    RunningWorker(WorkerParts parts, Consumer<RunningWorker> onLost, Runnable onBreakingMigration) {
        this(parts, onLost, onBreakingMigration, parts.tasks().directIdentifiers());
    }

    private RunningWorker(
            WorkerParts parts, Consumer<RunningWorker> onLost, Runnable onBreakingMigration, Set<String> directTasks) {
        this.parts = parts;
        services = new WorkerServices(parts, id, directTasks, () -> onLost.accept(this), onBreakingMigration);
        stop = new WorkerStop(services, request, abandoning);
    }

    /**
     * Runs every job that is due, those of direct tasks as the others, and returns when there is none left.
     *
     * @return how many jobs have been run, successfully or not
     */
    static long once(WorkerParts parts) throws InterruptedException {
        RunningWorker run = new RunningWorker(parts, lost -> {}, () -> {}, Set.of());
        try {
            return new SinglePass(run.services).run();
        } finally {
            // An interruption ends the pass; the stop needs the thread without it.
            boolean interrupted = Thread.interrupted();
            run.stop();
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    String id() {
        return id;
    }

    void publish(WorkerEvent event) {
        services.context.events().publish(event);
    }

    void start() {
        log.info(
                "Worker {} starts: schema {}, concurrency {}, tasks {}",
                id,
                parts.schema().name(),
                parts.settings().concurrency(),
                parts.tasks().identifiers());
        if (!parts.settings().listen()) {
            log.info(
                    "Worker {} does not listen for notifications (pgworker.listen.enabled=false): it looks for jobs every {} ms",
                    id,
                    parts.settings().pollInterval().toMillis());
        }
        services.context.events().start();
        services.start();
    }

    /**
     * Stops everything in the order that loses nothing. Each step is bounded in time, so that all of them take no longer than
     * {@link WorkerSettings#stopLimit}. Does nothing a second time.
     */
    void stop() {
        request.make(parts.settings().stopLimit());
        services.context.started().end();
        if (services.attempts.isOnHandlerThread()) {
            stopBesideHandler();
        } else {
            stopNow();
        }
    }

    /** A handler is interrupted by the stop that it has asked for, which must not end that. */
    private void stopBesideHandler() {
        Thread thread = new Thread(this::stopNow, "worker-stop");
        thread.start();
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private synchronized void stopNow() {
        if (ended) {
            return;
        }
        log.info("Worker {} stops", id);
        publish(new WorkerEvent.WorkerStopping(id));
        services.watchdog.beginStop();
        end(parts.settings().shutdownGracePeriod());
        log.info("Worker {} has stopped", id);
    }

    /**
     * Ends a run that may have been declared dead: interrupts its handlers, and writes what has become of its jobs, which
     * has an effect only where they are still its own, when the database is back. Returns then, or when stopped.
     *
     * @return false if it was stopped meanwhile
     */
    synchronized boolean abandon() {
        if (request.isMade() || ended) {
            return false;
        }
        abandoning.begin();
        try {
            giveUp();
        } finally {
            abandoning.end();
        }
        return !request.isMade();
    }

    @GuardedBy("this") private void giveUp() {
        Lease lease = services.lease;
        String reason = lease.isRevoked()
                ? "others have declared it dead"
                : "it could not send a heartbeat for " + Duration.ofNanos(lease.nanosSinceRenewal());
        log.warn("Worker {} gives up its jobs and restarts under a new id, because {}", id, reason);
        services.executor.close();
        services.executor.interruptAll();
        publish(new WorkerEvent.WorkerLost(id, reason));
        end(Duration.ZERO);
    }

    @GuardedBy("this") private void end(Duration grace) {
        try {
            stop.run(grace);
        } finally {
            ended = true;
        }
    }

    boolean awaitStarted(Duration limit) throws InterruptedException {
        return services.context.started().await(limit);
    }

    Set<ScheduledTask> scheduledTasks() {
        return services.periodic.scheduled();
    }

    WorkerStatus status() {
        LocalQueue.Load load = services.localQueue.load();
        return new WorkerStatus(
                id,
                load.running() + services.direct.running(),
                load.waiting(),
                Math.max(0, parts.settings().concurrency() - load.running()),
                services.listener != null && services.listener.isListening(),
                services.heartbeat.sinceBeat(),
                services.claimLoop.sinceSuccess(),
                deadThreads(),
                services.context.outage().isPresent(),
                stall(),
                services.reconciler.reconciled(),
                stuckThreads(),
                services.reconciler.sinceSuccess(),
                heldSnapshot(),
                Duration.ofNanos(System.nanoTime() - createdAt),
                !parts.settings().listen(),
                services.unservedTasks.found().stream()
                        .map(one -> new WorkerStatus.UnservedTask(one.task(), one.jobs(), one.closest()))
                        .toList(),
                services.pauses.current(),
                heldUp(),
                services.context.started().undone(),
                services.kept.losses(),
                failing());
    }

    private List<WorkerStatus.FailingLoop> failing() {
        Map<String, @Nullable BackgroundService> loops = new LinkedHashMap<>();
        loops.put("heartbeat", services.heartbeat);
        loops.put("claim", services.claimLoop);
        loops.put("completion", services.completer);
        loops.put("listener", services.listener);
        List<WorkerStatus.FailingLoop> found = new ArrayList<>();
        loops.forEach((name, loop) -> {
            Failing failing = loop == null ? null : loop.failing();
            if (failing != null) {
                found.add(new WorkerStatus.FailingLoop(
                        name,
                        Duration.ofNanos(System.nanoTime() - failing.since()),
                        failing.reason(),
                        failing.outage() && !services.context.outage().isPartial()));
            }
        });
        return found;
    }

    private List<String> heldUp() {
        return Stream.of(
                        Optional.ofNullable(services.pauses.obstacle()),
                        Optional.ofNullable(services.limits.obstacle()),
                        Optional.ofNullable(services.limitedClaims.obstacle()))
                .flatMap(Optional::stream)
                .toList();
    }

    private @Nullable String stall() {
        String missing = services.context.outage().missingSchema();
        if (missing != null) {
            return missing;
        }
        String stall = services.reconciler.stall();
        return stall == null ? neverBegun() : stall;
    }

    /** A worker that waits to know what is paused claims nothing, so that no claim shows whether jobs wait. */
    private @Nullable String neverBegun() {
        boolean soon = System.nanoTime() - createdAt < parts.stallAfter().toNanos();
        return soon || services.pauses.isKnown() ? null : services.pauses.obstacle();
    }

    private WorkerStatus.@Nullable HeldSnapshot heldSnapshot() {
        String holder = services.snapshots.holder();
        return holder == null ? null : new WorkerStatus.HeldSnapshot(holder, services.snapshots.age());
    }

    private List<String> deadThreads() {
        return Stream.concat(
                        services.all().filter(Service::isDead).map(Service::name),
                        services.context.events().isDead() ? Stream.of("worker-events") : Stream.empty())
                .toList();
    }

    private List<String> stuckThreads() {
        Duration limit = parts.stuckAfter();
        List<String> stuck = new ArrayList<>();
        services.all().filter(service -> service.isStuck(limit)).forEach(service -> stuck.add(service.name()));
        if (services.executor.isTimerStuck(limit)) {
            stuck.add("worker-timeout");
        }
        if (abandoning.isStuck(limit)) {
            stuck.add("worker-restart");
        }
        return stuck;
    }

    private static String randomHex() {
        byte[] bytes = new byte[9];
        new SecureRandom().nextBytes(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
