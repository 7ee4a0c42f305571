package dev.pgworker;

import java.lang.management.ManagementFactory;
import java.security.SecureRandom;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.stream.Stream;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.UncategorizedSQLException;
import org.springframework.jdbc.support.SQLStateSQLExceptionTranslator;
import org.springframework.transaction.PlatformTransactionManager;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.crontab.CronScheduler;
import dev.pgworker.internal.engine.ClaimFloor;
import dev.pgworker.internal.engine.CurrentFlags;
import dev.pgworker.internal.engine.DirectChains;
import dev.pgworker.internal.engine.FetchLoop;
import dev.pgworker.internal.engine.Fetcher;
import dev.pgworker.internal.engine.FloorScanner;
import dev.pgworker.internal.engine.FollowUpClaims;
import dev.pgworker.internal.engine.HandlerTransactions;
import dev.pgworker.internal.engine.JobAnnouncements;
import dev.pgworker.internal.engine.JobCompleter;
import dev.pgworker.internal.engine.JobExecutor;
import dev.pgworker.internal.engine.JobRunner;
import dev.pgworker.internal.engine.LocalQueue;
import dev.pgworker.internal.engine.MigrationWatch;
import dev.pgworker.internal.engine.NotificationListener;
import dev.pgworker.internal.engine.Ownership;
import dev.pgworker.internal.engine.QueueFloors;
import dev.pgworker.internal.engine.Reconciler;
import dev.pgworker.internal.engine.SecondFetchLoop;
import dev.pgworker.internal.engine.SnapshotWatch;
import dev.pgworker.internal.engine.Vacuum;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.jdbc.StaleConnections;
import dev.pgworker.internal.lifecycle.Activity;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.lifecycle.Lease;
import dev.pgworker.internal.recovery.Heartbeat;
import dev.pgworker.internal.recovery.LeaseWatchdog;
import dev.pgworker.internal.recovery.OldLocks;
import dev.pgworker.internal.recovery.Sweep;
import dev.pgworker.internal.store.CrontabStore;
import dev.pgworker.internal.store.DirectStore;
import dev.pgworker.internal.store.JobStore;
import dev.pgworker.internal.store.JobTableStore;
import dev.pgworker.internal.store.MigrationStore;
import dev.pgworker.internal.store.SweepStore;
import dev.pgworker.internal.store.WorkerStore;
import dev.pgworker.recovery.RecoverySettings;

/** One run of a worker, from start to stop, under one id: wires the services and stops them in order. */
final class RunningWorker {

    private static final Logger log = LoggerFactory.getLogger(RunningWorker.class);

    /** How long what claims jobs may take to notice that it is stopped, all together. */
    private static final Duration CLAIMING_STOP_LIMIT = Duration.ofSeconds(3);

    /** The same for what writes outcomes and proves the worker's life. */
    private static final Duration LAST_STOP_LIMIT = Duration.ofSeconds(2);

    /** How long interrupted handlers may take to end before their jobs are given back regardless. */
    private static final Duration AFTER_INTERRUPT = Duration.ofSeconds(1);

    /** How long outcomes may take to be written, if the stop has that much time left. */
    private static final Duration FLUSH_LIMIT = Duration.ofSeconds(10);

    /** How long listeners may take for the last events. */
    private static final Duration EVENTS_LIMIT = Duration.ofSeconds(2);

    /** What a busy machine may add to the steps of a stop. */
    private static final Duration STOP_MARGIN = Duration.ofSeconds(1);

    /** How long a stop may wait for each of two answers to what the worker still holds. */
    private static final Duration LAST_LOOK_LIMIT = Duration.ofMillis(700);

    /** How often a single pass looks after jobs that have waited too long for a handler. */
    private static final Duration TEND_INTERVAL = Duration.ofMillis(200);

    private static final int MOST_CONFLICTS = 10;

    /** How long somebody may hold a snapshot, and how many jobs this worker may finish meanwhile, without being named. */
    private static final Duration LONGEST_SNAPSHOT = Duration.ofMinutes(1);

    private static final long LEAST_FINISHED = 10_000;

    /** How soon a stop is noticed by a lost worker that waits for its database. */
    private static final Duration STOP_CHECK = Duration.ofMillis(100);

    private final String id = "pgworker-" + randomHex();
    private final WorkerParts parts;
    private final WorkerEvents events;
    private final JobStore store;
    private final LocalQueue localQueue;
    private final @Nullable ExecutorService ownExecutor;
    private final FollowUpClaims continuations;
    private final JobCompleter completer;
    private final JobExecutor executor;
    private final CurrentFlags flags;
    private final Reconciler audit;
    private final Fetcher fetcher;
    private final FetchLoop fetchLoop;
    private final DirectChains direct;
    private final SecondFetchLoop secondFetchLoop;
    private final FloorScanner lookBelow;
    private final MigrationWatch ledgerWatch;
    private final NotificationListener listener;
    private final Heartbeat heartbeat;
    private final LeaseWatchdog fence;
    private final Sweep sweep;
    private final SnapshotWatch snapshots;
    private final @Nullable Vacuum vacuum;
    private final @Nullable CronScheduler cron;
    private final Lease lease;
    private final Outage outage = new Outage();
    private final Activity abandoning = new Activity();
    private final long createdAt = System.nanoTime();

    /** Set before the lock is asked for, so that whoever has it hurries. */
    private volatile boolean stopRequested;

    /** When a requested stop has to be over, by {@link System#nanoTime}; set before the request. */
    private volatile long stopBy;

    @GuardedBy("this") private boolean ended;

    /**
     * Wires a run.
     *
     * @param onLost called with this when others may have declared the worker dead; must return soon
     * @param onBreakingMigration called when this worker cannot go on with the schema
     */
    RunningWorker(WorkerParts parts, Consumer<RunningWorker> onLost, Runnable onBreakingMigration) {
        this(parts, onLost, onBreakingMigration, parts.tasks().directIdentifiers());
    }

    private RunningWorker(
            WorkerParts parts, Consumer<RunningWorker> onLost, Runnable onBreakingMigration, Set<String> directTasks) {
        this.parts = parts;
        WorkerSettings settings = parts.settings();
        events = new WorkerEvents(id, parts.directListeners(), parts.listeners());
        RecoverySettings recovery = settings.recovery();
        lease = new Lease(recovery.sweepThreshold(), recovery.resilientSweepThreshold());
        store = new JobStore(parts.dataSource(), parts.schema(), id);
        flags = new CurrentFlags(parts.forbiddenFlags());
        localQueue = new LocalQueue(
                settings.concurrency(), settings.localQueueSize(), settings.localQueueTtl(), settings.queueRunLimit());
        audit = new Reconciler(id, store, localQueue, parts.auditInterval(), parts.stallAfter(), events, outage);
        Ownership ownership = new Ownership(lease, store, localQueue);
        QueueFloors queueFloors = new QueueFloors();
        continuations = new FollowUpClaims(ownership, localQueue, flags, queueFloors);
        completer =
                new JobCompleter(id, store, localQueue, audit, continuations, events, parts.auditInterval(), outage);
        ownExecutor = parts.handlerExecutor() == null ? handlerThreads() : null;
        Executor handlers = ownExecutor == null ? parts.handlerExecutor() : ownExecutor;
        executor = new JobExecutor(
                id,
                localQueue,
                new JobRunner(parts.tasks(), parts.codec(), parts.jobInterceptors(), transactions(ownership), events),
                parts.jobScheduler(),
                Objects.requireNonNull(handlers),
                ownExecutor == null,
                ownership,
                settings.interruptedJobRetryDelay(),
                completer);
        JobTableStore table = new JobTableStore(parts.dataSource(), parts.schema());
        snapshots = new SnapshotWatch(table, localQueue::settledInTotal, LONGEST_SNAPSHOT, LEAST_FINISHED, outage);
        vacuum = settings.vacuum() ? new Vacuum(table, localQueue, snapshots, outage) : null;
        ClaimFloor floor = new ClaimFloor();
        fetcher = new Fetcher(
                id,
                store,
                parts.tasks().identifiers(),
                localQueue,
                audit,
                executor,
                continuations,
                flags,
                floor,
                queueFloors,
                events);
        fetchLoop = new FetchLoop(id, fetcher, localQueue, ownership, settings.pollInterval(), events, outage);
        secondFetchLoop = new SecondFetchLoop(fetcher, localQueue, ownership, fetchLoop::jobsMayBeDue, outage);
        fetchLoop.connect(secondFetchLoop);
        direct = new DirectChains(
                id,
                directTasks,
                fetcher,
                store,
                new DirectStore(parts.privateDataSource(), parts.dataSource(), parts.schema(), id),
                localQueue,
                audit,
                executor,
                completer,
                ownership,
                flags,
                settings.pollInterval(),
                fetchLoop::tasksMayHaveChanged,
                events,
                outage);
        lookBelow = new FloorScanner(floor, queueFloors, fetcher, fetchLoop::jobsMayBeDue, outage);
        continuations.connect(executor::submit);
        executor.audited(audit, this::whyNothingStarts);
        completer.connect(this::capacityFreed, this::jobsMayBeDue);
        localQueue.connect(this::capacityFreed);
        lease.whenChanged(() -> {
            capacityFreed();
            direct.jobsMayBeDue();
        });
        lease.extendWhile(() -> executor.runsAnyFlagged(recovery.resilientJobFlags()));
        ledgerWatch = new MigrationWatch(
                id, new MigrationStore(parts.dataSource(), parts.schema()), onBreakingMigration, events, outage);
        listener = new NotificationListener(
                id,
                parts.listenDataSource(),
                this::jobsMayBeDue,
                new JobAnnouncements(floor, queueFloors),
                ledgerWatch::migrationAnnounced,
                events,
                outage);
        outage.whenTold(error -> StaleConnections.discardAfter(parts.dataSource(), error));
        heartbeat = new Heartbeat(parts.heartbeatStore(), id, metadata(), recovery.heartbeatInterval(), lease, outage);
        fence = new LeaseWatchdog(lease, () -> onLost.accept(this), outage);
        sweep = new Sweep(
                id,
                recovery,
                new SweepStore(parts.dataSource(), parts.schema(), parts.recoveryHandlers()),
                new OldLocks(new WorkerStore(parts.dataSource(), parts.schema())),
                lease,
                events,
                outage);
        cron = parts.cron().isEmpty()
                ? null
                : new CronScheduler(
                        id, parts.cron(), new CrontabStore(parts.dataSource(), parts.schema()), events, outage);
    }

    /** Returns a run for a single pass, which claims the jobs of all tasks alike. */
    static RunningWorker once(WorkerParts parts) {
        return new RunningWorker(parts, lost -> {}, () -> {}, Set.of());
    }

    private void jobsMayBeDue() {
        fetchLoop.jobsMayBeDue();
        direct.jobsMayBeDue();
    }

    private void capacityFreed() {
        fetchLoop.capacityFreed();
        secondFetchLoop.begin();
        direct.capacityFreed();
    }

    private @Nullable HandlerTransactions transactions(Ownership ownership) {
        PlatformTransactionManager manager = parts.transactionManager();
        return manager == null
                ? null
                : new HandlerTransactions(manager, parts.dataSource(), store, localQueue, continuations, ownership);
    }

    /** Called on {@code worker-reconcile} when no job has started for a while although a handler is free. */
    private @Nullable String whyNothingStarts() throws SQLException {
        // A job that is given back and claimed again waits on.
        Duration longEnough = audit.stall() == null ? parts.stallAfter() : Duration.ZERO;
        if (!lease.isHeld()) {
            return null;
        }
        if (localQueue.sinceStartable().compareTo(longEnough) <= 0) {
            try {
                if (!fetcher.jobsWait(longEnough)) {
                    return null;
                }
            } catch (SQLTransientConnectionException e) {
                return whyThePoolIsToBlame(e, longEnough);
            }
        }
        String obstacle = fetchLoop.obstacle() == null ? completer.obstacle() : fetchLoop.obstacle();
        LocalQueue.Load load = localQueue.load();
        if (obstacle != null) {
            return obstacle;
        }
        if (load.waiting() + load.unwritten() == 0) {
            String refusal = fetcher.refusal();
            return refusal == null
                    ? "they cannot be claimed: another transaction holds their rows, or the database refuses to change them"
                    : "job " + refusal;
        }
        return load.waiting() + " claimed jobs wait for the handler executor, and the outcomes of " + load.unwritten()
                + " are not written";
    }

    /** A pool has given no connection: the application may have all of them in use, though the database can be used. */
    private @Nullable String whyThePoolIsToBlame(SQLTransientConnectionException failure, Duration longEnough)
            throws SQLException {
        JobStore beside = parts.storeBesideThePool(id);
        if (beside == null) {
            throw failure;
        }
        return fetcher.jobsWait(longEnough, beside) ? ErrorText.headline(failure) : null;
    }

    String id() {
        return id;
    }

    WorkerStatus status() {
        LocalQueue.Load load = localQueue.load();
        List<String> dead = Stream.concat(
                        services().filter(BackgroundService::isDead).map(BackgroundService::name),
                        events.isDead() ? Stream.of("worker-events") : Stream.empty())
                .toList();
        return new WorkerStatus(
                id,
                load.running() + direct.running(),
                load.waiting(),
                Math.max(0, parts.settings().concurrency() - load.running()),
                listener.isListening(),
                heartbeat.sinceBeat(),
                fetchLoop.sinceSuccess(),
                dead,
                outage.isPresent(),
                audit.stall(),
                audit.reconciled(),
                stuckThreads(),
                audit.sinceSuccess(),
                heldSnapshot(),
                Duration.ofNanos(System.nanoTime() - createdAt));
    }

    private WorkerStatus.@Nullable HeldSnapshot heldSnapshot() {
        String holder = snapshots.holder();
        return holder == null ? null : new WorkerStatus.HeldSnapshot(holder, snapshots.age());
    }

    private List<String> stuckThreads() {
        Duration limit = parts.stuckAfter();
        List<String> stuck = new ArrayList<>();
        services().filter(service -> service.isStuck(limit)).forEach(service -> stuck.add(service.name()));
        if (executor.isTimerStuck(limit)) {
            stuck.add("worker-timeout");
        }
        if (abandoning.isStuck(limit)) {
            stuck.add("worker-restart");
        }
        return stuck;
    }

    private Stream<BackgroundService> services() {
        return Stream.concat(direct.services(), otherServices());
    }

    private Stream<BackgroundService> otherServices() {
        return Stream.of(
                        heartbeat,
                        fence,
                        completer,
                        listener,
                        ledgerWatch,
                        fetchLoop,
                        secondFetchLoop,
                        lookBelow,
                        audit,
                        sweep,
                        snapshots,
                        vacuum,
                        cron)
                .filter(Objects::nonNull);
    }

    void publish(WorkerEvent event) {
        events.publish(event);
    }

    void start() {
        log.info(
                "Worker {} starts: schema {}, concurrency {}, tasks {}",
                id,
                parts.schema().name(),
                parts.settings().concurrency(),
                parts.tasks().identifiers());
        events.start();
        heartbeat.start();
        fence.start();
        completer.start();
        ledgerWatch.start();
        listener.start();
        fetchLoop.start();
        secondFetchLoop.start();
        direct.start();
        lookBelow.start();
        audit.start();
        sweep.start();
        snapshots.start();
        if (vacuum != null) {
            vacuum.start();
        }
        if (cron != null) {
            cron.start();
        }
    }

    /**
     * Stops everything in the order that loses nothing. Each step is bounded in time, so that all of them take no longer than
     * {@link WorkerSettings#stopLimit}. Does nothing a second time.
     */
    void stop() {
        stopBy = System.nanoTime() + parts.settings().stopLimit().toNanos();
        stopRequested = true;
        if (executor.isOnHandlerThread()) {
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
        events.publish(new WorkerEvent.WorkerStopping(id));
        fence.beginStop();
        windUp(parts.settings().shutdownGracePeriod());
        log.info("Worker {} has stopped", id);
    }

    /**
     * Ends a run that may have been declared dead: interrupts its handlers, and writes what has become of its jobs, which
     * has an effect only where they are still its own, when the database is back. Returns then, or when stopped.
     *
     * @return false if it was stopped meanwhile
     */
    synchronized boolean abandon() {
        if (stopRequested || ended) {
            return false;
        }
        abandoning.begin();
        try {
            giveUp();
        } finally {
            abandoning.end();
        }
        return !stopRequested;
    }

    @GuardedBy("this") private void giveUp() {
        String reason = lease.isRevoked()
                ? "others have declared it dead"
                : "it could not prove its life for " + Duration.ofNanos(lease.nanosSinceRenewal());
        log.warn("Worker {} gives up its jobs and starts over under another id, because {}", id, reason);
        executor.close();
        executor.interruptAll();
        events.publish(new WorkerEvent.WorkerLost(id, reason));
        windUp(Duration.ZERO);
    }

    /** Ends the run whatever happens: memory may be short. */
    @GuardedBy("this") private void windUp(Duration grace) {
        try {
            stopClaiming();
            finishAndFlush(grace);
        } catch (RuntimeException | Error e) {
            heartbeat.stayRegistered();
            log.error(
                    "Worker {} did not stop in order; jobs that it still holds stay locked until they are recovered",
                    id,
                    ErrorText.loggable(e));
        } finally {
            end();
        }
    }

    private void stopClaiming() {
        if (vacuum != null) {
            vacuum.cancel();
        }
        direct.beginStop();
        fetchLoop.beginStop();
        secondFetchLoop.beginStop();
        fetcher.cancel();
        stopAll(
                CLAIMING_STOP_LIMIT,
                cron,
                sweep,
                snapshots,
                vacuum,
                listener,
                ledgerWatch,
                fetchLoop,
                secondFetchLoop,
                lookBelow,
                audit);
        continuations.stop();
        executor.close();
    }

    @GuardedBy("this") private void end() {
        stopAll(LAST_STOP_LIMIT, completer, heartbeat, fence);
        executor.shutDown();
        flags.shutDown();
        if (ownExecutor != null) {
            ownExecutor.shutdown();
        }
        ended = true;
        events.publish(new WorkerEvent.WorkerStopped(id));
        events.close(EVENTS_LIMIT);
    }

    /** Stops services at the same time, and waits for all of them together no longer than the limit. */
    private static void stopAll(Duration limit, @Nullable BackgroundService... services) {
        long end = System.nanoTime() + limit.toNanos();
        Stream.of(services).filter(Objects::nonNull).forEach(BackgroundService::beginStop);
        Stream.of(services)
                .filter(Objects::nonNull)
                .forEach(service -> service.stop(Duration.ofNanos(Math.max(0, end - System.nanoTime()))));
    }

    /** Returns how long outcomes may take to be written, so that a stop leaves time for what comes after. */
    private Duration flushLimit() {
        if (!stopRequested) {
            return FLUSH_LIMIT;
        }
        Duration left = Duration.ofNanos(stopBy - System.nanoTime())
                .minus(LAST_STOP_LIMIT)
                .minus(EVENTS_LIMIT)
                .minus(LAST_LOOK_LIMIT.multipliedBy(2))
                .minus(STOP_MARGIN);
        return left.compareTo(FLUSH_LIMIT) < 0 ? left : FLUSH_LIMIT;
    }

    private void finishAndFlush(Duration grace) {
        boolean written = false;
        try {
            long graceEnd = System.nanoTime() + grace.toNanos();
            executor.finish(grace, AFTER_INTERRUPT);
            finishDirect(Duration.ofNanos(Math.max(0, graceEnd - System.nanoTime())));
            while (!stopRequested && outage.isPresent() && !completer.awaitWritten(STOP_CHECK)) {
                // A lost worker has time: nobody can take its jobs before the database is back.
                abandoning.progress();
            }
            Duration limit = flushLimit();
            written = completer.awaitWritten(limit);
            if (!written) {
                log.error(
                        "Some outcomes could not be written within {}; their jobs stay locked until"
                                + " they are recovered",
                        limit);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            log.warn("The stop was interrupted; jobs that are running stay locked until they are recovered");
        }
        // What may still be claimed, or was without anybody knowing, is taken from this worker when it shows no life.
        if (!written || !knowsToHoldNothing()) {
            heartbeat.stayRegistered();
        }
    }

    /** Waits for the handlers of direct batches as for others; the jobs of a batch that does not end are free. */
    private void finishDirect(Duration grace) {
        if (!direct.awaitEnd(grace)) {
            executor.interruptAll();
            if (!direct.awaitEnd(AFTER_INTERRUPT)) {
                executor.abandonRunning();
                direct.abort();
            }
        }
    }

    /** Nobody may have a reason to doubt, and a claim may have been made twice all the same. */
    private boolean knowsToHoldNothing() {
        boolean doubted = audit.isInDoubt();
        if (!doubted && outage.isPresent()) {
            return true;
        }
        boolean looked = audit.lookForTheLastTime(LAST_LOOK_LIMIT);
        return looked || !(doubted || audit.isInDoubt());
    }

    long runOnce() throws InterruptedException {
        events.start();
        heartbeat.start();
        completer.start();
        audit.start();
        try {
            fetcher.learnTasks();
            while (true) {
                if (lease.isLost()) {
                    throw new IllegalStateException("Worker " + id + " could not prove its life");
                }
                fetcher.tend();
                // Read first: a job settled after this may have added one that the claim does not see.
                long settled = localQueue.settledInTotal();
                boolean idle = localQueue.isIdle();
                int room = localQueue.free();
                boolean anyFetched =
                        room > 0 && lease.isHeld() && fetchUndisturbed(room).mayGoOn();
                if (!anyFetched && idle && lease.isHeld()) {
                    return settled;
                } else if (!anyFetched) {
                    localQueue.awaitSettledBeyond(settled, TEND_INTERVAL);
                }
            }
        } catch (SQLException e) {
            throw translate(e);
        } finally {
            stop();
        }
    }

    /** Claims jobs, once more where another transaction was in the way, or a single job that the next claim passes over. */
    private Fetcher.Fetched fetchUndisturbed(int room) throws SQLException {
        for (int attempt = 1; ; attempt++) {
            try {
                return fetcher.fetch(room);
            } catch (SQLException e) {
                boolean outage = DatabaseFailure.of(e) == DatabaseFailure.OUTAGE && !DatabaseFailure.isAnswer(e);
                if (outage || attempt == MOST_CONFLICTS) {
                    throw e;
                }
            }
        }
    }

    private static DataAccessException translate(SQLException e) {
        DataAccessException translated = new SQLStateSQLExceptionTranslator().translate("run the due jobs", null, e);
        return translated == null ? new UncategorizedSQLException("run the due jobs", null, e) : translated;
    }

    /** The times tell sweeps when to take this worker for dead. */
    private String metadata() {
        RecoverySettings recovery = parts.settings().recovery();
        return new JsonMapper()
                .writeValueAsString(Map.of(
                        "implementation", "pgworker",
                        "process", ManagementFactory.getRuntimeMXBean().getName(),
                        "concurrency", parts.settings().concurrency(),
                        "tasks", parts.tasks().identifiers(),
                        "heartbeatIntervalMillis", recovery.heartbeatInterval().toMillis(),
                        "sweepThresholdMillis", recovery.sweepThreshold().toMillis(),
                        "resilientSweepThresholdMillis",
                                recovery.resilientSweepThreshold().toMillis()));
    }

    private static ExecutorService handlerThreads() {
        AtomicInteger number = new AtomicInteger();
        return new ThreadPoolExecutor(0, Integer.MAX_VALUE, 60, TimeUnit.SECONDS, new SynchronousQueue<>(), task -> {
            Thread thread = new Thread(task, "worker-job-" + number.incrementAndGet());
            thread.setDaemon(true);
            return thread;
        });
    }

    private static String randomHex() {
        byte[] bytes = new byte[9];
        new SecureRandom().nextBytes(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
