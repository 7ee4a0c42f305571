package dev.pgworker;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;
import org.springframework.transaction.PlatformTransactionManager;

import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.internal.client.JdbcJobFlows;
import dev.pgworker.internal.client.JdbcJobLimits;
import dev.pgworker.internal.client.ResultWaits;
import dev.pgworker.internal.engine.HeldBack;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.claim.AnnouncedClaims;
import dev.pgworker.internal.engine.claim.ClaimLoop;
import dev.pgworker.internal.engine.claim.ClaimPermission;
import dev.pgworker.internal.engine.claim.ClaimTracker;
import dev.pgworker.internal.engine.claim.Claims;
import dev.pgworker.internal.engine.claim.CurrentFlags;
import dev.pgworker.internal.engine.claim.DirectTasks;
import dev.pgworker.internal.engine.claim.DueJobs;
import dev.pgworker.internal.engine.claim.LimitedClaims;
import dev.pgworker.internal.engine.claim.Looks;
import dev.pgworker.internal.engine.claim.ServedTasks;
import dev.pgworker.internal.engine.complete.JobCompleter;
import dev.pgworker.internal.engine.complete.Reconciler;
import dev.pgworker.internal.engine.complete.StallDiagnosis;
import dev.pgworker.internal.engine.direct.DirectChains;
import dev.pgworker.internal.engine.floor.Floors;
import dev.pgworker.internal.engine.floor.JobAnnouncements;
import dev.pgworker.internal.engine.queue.FreedQueues;
import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.engine.run.HandlerCalls;
import dev.pgworker.internal.engine.run.HandlerServices;
import dev.pgworker.internal.engine.run.HandlerThreads;
import dev.pgworker.internal.engine.run.HandlerTransactions;
import dev.pgworker.internal.engine.run.JobExecutor;
import dev.pgworker.internal.engine.run.OutcomeInbox;
import dev.pgworker.internal.engine.run.Ownership;
import dev.pgworker.internal.engine.run.Payloads;
import dev.pgworker.internal.engine.run.RunResults;
import dev.pgworker.internal.engine.run.RunningAttempts;
import dev.pgworker.internal.engine.run.StepRuns;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.jdbc.StaleConnections;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.lifecycle.Hearing;
import dev.pgworker.internal.lifecycle.Lease;
import dev.pgworker.internal.lifecycle.PeriodicService;
import dev.pgworker.internal.lifecycle.PeriodicTasks;
import dev.pgworker.internal.lifecycle.Service;
import dev.pgworker.internal.lifecycle.Started;
import dev.pgworker.internal.lifecycle.Started.Part;
import dev.pgworker.internal.lifecycle.WorkSignal;
import dev.pgworker.internal.limit.DeclaredLimits;
import dev.pgworker.internal.limit.LimitKeeper;
import dev.pgworker.internal.record.TaskCounts;
import dev.pgworker.internal.record.WorkRecord;
import dev.pgworker.internal.recovery.Heartbeat;
import dev.pgworker.internal.recovery.LeaseWatchdog;
import dev.pgworker.internal.store.CancelStore;
import dev.pgworker.internal.store.HistoryStore;
import dev.pgworker.internal.store.JobStore;
import dev.pgworker.internal.store.JobTableStore;
import dev.pgworker.internal.store.KeptHistory;
import dev.pgworker.internal.store.LimitStore;
import dev.pgworker.internal.store.LookoutStore;
import dev.pgworker.internal.store.LookoutStore.Subject;
import dev.pgworker.internal.store.MigrationStore;
import dev.pgworker.internal.store.PauseStore;
import dev.pgworker.internal.store.RunningStore;
import dev.pgworker.internal.store.StatisticsStore;
import dev.pgworker.internal.store.UnservedStore;
import dev.pgworker.internal.watch.CancelWatch;
import dev.pgworker.internal.watch.HistoryKeeper;
import dev.pgworker.internal.watch.Lookout;
import dev.pgworker.internal.watch.MigrationWatch;
import dev.pgworker.internal.watch.NotificationListener;
import dev.pgworker.internal.watch.PauseWatch;
import dev.pgworker.internal.watch.SnapshotWatch;
import dev.pgworker.internal.watch.UnservedTasks;
import dev.pgworker.internal.watch.Vacuum;
import dev.pgworker.recovery.RecoverySettings;

/** The parts of one run of a worker, not started. Who knows whom is decided here and nowhere else. */
final class WorkerServices {

    /**
     * How long a session may hold a snapshot, and how many jobs this worker may finish meanwhile, without being named.
     */
    private static final Duration LONGEST_SNAPSHOT = Duration.ofMinutes(1);

    private static final long LEAST_FINISHED = 10_000;

    private final WorkerParts parts;
    private final ClaimTracker tracker;
    private final JobStore store;
    private final Ownership ownership;
    final KeptHistory kept = new KeptHistory();
    private final HeldBack held = new HeldBack();
    private final List<DueJobs> allDue;
    private final FreedQueues freedQueues;

    final WorkerContext context;
    final PeriodicTasks periodic;
    final Lease lease;
    final RunningAttempts attempts = new RunningAttempts();
    final LocalQueue localQueue;
    final CurrentFlags flags;
    final JobExecutor executor;
    final JobCompleter completer;
    final DueJobs due;
    final Claims claims;
    final ClaimLoop claimLoop;
    final Looks looks;
    final DirectChains direct;
    final Reconciler reconciler;
    final Lookout lookout;
    final @Nullable NotificationListener listener;
    final MigrationWatch migrations;
    final HistoryKeeper history;
    final PauseWatch pauses;
    final CancelWatch cancels;
    final Heartbeat heartbeat;
    final LeaseWatchdog watchdog;
    final SnapshotWatch snapshots;
    final UnservedTasks unservedTasks;
    final @Nullable Vacuum vacuum;
    final RecurringServices recurring;
    final LimitedClaims limitedClaims;
    final LimitKeeper limits;
    final WorkRecord record;

    /**
     * Wires a run.
     *
     * @param directTasks identifiers of the tasks whose jobs run in direct batches
     * @param onLost called when others may have declared the worker dead; must return soon
     * @param onBreakingMigration called when this worker cannot continue with the schema
     */
    WorkerServices(
            WorkerParts parts,
            String workerId,
            Set<String> directTasks,
            Runnable onLost,
            Runnable onBreakingMigration) {
        this.parts = parts;
        WorkSignal signal = new WorkSignal();
        TaskCounts counts = parts.settings().statistics() ? new TaskCounts() : null;
        context = context(workerId, signal, counts);
        periodic = new PeriodicTasks(parts.periodic().name(), parts.periodic().observations());
        store = new JobStore(parts.dataSource(), parts.privateDataSource(), parts.schema(), workerId);
        tracker = new ClaimTracker(signal);
        freedQueues = new FreedQueues(store.outcomes()::wake);
        flags = new CurrentFlags(parts.forbiddenFlags());

        // Run: what has been claimed.
        RecoverySettings recovery = parts.settings().recovery();
        lease = new Lease(
                recovery.sweepThreshold(),
                recovery.resilientSweepThreshold(),
                () -> attempts.anyFlagged(recovery.resilientJobFlags()),
                () -> {
                    context.started().done(Part.REGISTRATION);
                    signal.leaseChanged();
                });
        localQueue = localQueue(signal);
        history = new HistoryKeeper(
                new HistoryStore(parts.dataSource(), parts.schema()),
                parts.settings().history(),
                kept,
                signal::leaseChanged,
                context.outage());
        lookout = lookout();
        pauses = new PauseWatch(
                new PauseStore(parts.dataSource(), parts.schema()),
                held,
                () -> lookout.hearing(Subject.PAUSES),
                signal::leaseChanged,
                context);
        ownership = new Ownership(lease, store.holdings(), localQueue.inFlight().renewals(), this::isKnownWhatMayRun);
        OutcomeInbox inbox = new OutcomeInbox(parts.settings().interruptedJobRetryDelay());
        executor = new JobExecutor(
                context,
                localQueue,
                handlerCalls(),
                new HandlerThreads(localQueue, parts.handlerExecutor()),
                attempts,
                ownership,
                inbox);

        // Claim and complete.
        ServedTasks tasks = new ServedTasks(
                store.claims(), parts.tasks().identifiers(), new DirectTasks(directTasks, signal), held);
        ClaimPermission permission = new ClaimPermission(tasks, flags, ownership);
        completer = new JobCompleter(
                context, store.outcomes(), localQueue, tracker, freedQueues, inbox, parts.reconcileInterval());
        Floors floors = new Floors();
        due = new DueJobs(store.claims(), floors, tasks::ordinary, flags);
        claims = new Claims(context, store.claims(), permission, localQueue, due, tracker, executor);
        limitedClaims = new LimitedClaims(context, store.claims(), permission, localQueue, tracker, executor);
        limits = limits();
        claimLoop = new ClaimLoop(
                context,
                new ClaimLoop.Kinds(claims, limitedClaims),
                localQueue,
                due,
                ownership,
                freedQueues,
                new ClaimLoop.Polling(parts.settings().pollInterval(), this::polls));
        Floors directFloors = new Floors(false);
        DueJobs directDue = new DueJobs(store.claims(), directFloors, tasks::batched, flags);
        allDue = directTasks.isEmpty() ? List.of(due) : List.of(due, directDue);
        direct = new DirectChains(context, permission, store, directDue, localQueue, tracker, executor);
        JobAnnouncements announcements = new JobAnnouncements(
                List.of(floors, directFloors), () -> allDue.forEach(DueJobs::lookForJobs), claimLoop::claimAnnounced);
        AnnouncedClaims announced =
                new AnnouncedClaims(context, store.claims(), permission, tracker, localQueue, claimLoop, executor);
        looks = new Looks(context, allDue, ownership);

        // Watch.
        reconciler = reconciler();
        migrations = new MigrationWatch(
                workerId,
                new MigrationStore(parts.dataSource(), parts.schema()),
                onBreakingMigration,
                context.events(),
                context.outage());
        recurring = new RecurringServices(parts, context, lease, lookout);
        cancels = new CancelWatch(
                workerId,
                new CancelStore(parts.dataSource(), parts.schema(), workerId),
                localQueue.inFlight(),
                executor::cancel,
                this::isListening,
                context.outage());
        listener = parts.settings().listen() ? listener(announcements, announced) : null;
        JobTableStore table = new JobTableStore(parts.dataSource(), parts.schema());
        snapshots = new SnapshotWatch(
                table, localQueue.inFlight()::settledInTotal, LONGEST_SNAPSHOT, LEAST_FINISHED, context.outage());
        unservedTasks = new UnservedTasks(
                new UnservedStore(parts.dataSource(), parts.schema()),
                parts.tasks().identifiers(),
                parts.stallAfter(),
                context.outage());
        vacuum = parts.settings().vacuum()
                ? new Vacuum(table, localQueue.inFlight(), snapshots, context.outage())
                : null;

        // Live, recover, recur.
        heartbeat = new Heartbeat(
                parts.heartbeatStore(),
                workerId,
                parts.metadata(),
                recovery.heartbeatInterval(),
                lease,
                this::cancelsMayHaveBeenMissed,
                context.outage());
        watchdog = new LeaseWatchdog(lease, onLost, context.outage());
        record = new WorkRecord(
                attempts,
                localQueue.inFlight().renewals(),
                new RunningStore(parts.dataSource(), parts.schema(), workerId),
                counts,
                new StatisticsStore(parts.dataSource(), parts.schema()),
                context.outage());
        held.tells(() -> {
            tasks.refresh();
            due.forget();
            localQueue.putHeldAside();
            signal.tasksMayHaveChanged();
        });
        signal.wakes(claimLoop, direct, reconciler, watchdog);
    }

    private boolean isKnownWhatMayRun() {
        return history.isReady() && pauses.isKnown() && limits.isKnown();
    }

    private boolean isListening() {
        return listener != null && listener.isListening();
    }

    private WorkerContext context(String workerId, WorkSignal signal, @Nullable TaskCounts counts) {
        List<WorkerEventListener> direct = new ArrayList<>(parts.directListeners());
        if (counts != null) {
            direct.add(counts);
        }
        Outage outage = new Outage(error -> {
            StaleConnections.discardAfter(parts.dataSource(), error);
            context.started().reconsider();
        });
        return new WorkerContext(
                workerId,
                new WorkerEvents(workerId, direct, parts.listeners()),
                outage,
                signal,
                new Started(() -> outage.isPresent() || outage.missingSchema() != null));
    }

    private LocalQueue localQueue(WorkSignal signal) {
        WorkerSettings settings = parts.settings();
        return new LocalQueue(
                new LocalQueue.Limits(
                        settings.concurrency(),
                        settings.localQueueSize(),
                        settings.localQueueTtl(),
                        settings.queueRunLimit()),
                held,
                freedQueues,
                signal::capacityFreed,
                signal::limitsMayAllow);
    }

    private HandlerCalls handlerCalls() {
        PlatformTransactionManager manager = parts.transactionManager();
        RunResults results = new RunResults(
                kept,
                parts.codec(),
                parts.settings().history().maxResultSize(),
                parts.settings().results().maxSize());
        StepRuns steps = new StepRuns(
                store.steps(),
                localQueue.inFlight().renewals(),
                parts.codec(),
                parts.settings().steps().maxResultSize(),
                parts.dataSource(),
                manager);
        return new HandlerCalls(
                parts.tasks(),
                parts.jobInterceptors(),
                manager == null
                        ? null
                        : new HandlerTransactions(
                                manager,
                                parts.dataSource(),
                                store.outcomes(),
                                localQueue.inFlight().renewals(),
                                ownership),
                new HandlerServices(
                        parts.jobScheduler(),
                        results,
                        steps,
                        new JdbcJobFlows(parts.dataSource(), parts.schema(), parts.codec(), parts.jobScheduler())
                                ::resultsFor),
                parts.settings().cancel(),
                new Payloads(store.claims(), localQueue));
    }

    private Reconciler reconciler() {
        StallDiagnosis diagnosis = new StallDiagnosis(
                ownership,
                localQueue,
                claims,
                claimLoop,
                completer,
                new StallDiagnosis.Questions(
                        store.claims(), parts.claimsBesideThePool(context.workerId()), parts.stallAfter()));
        return new Reconciler(context, store, localQueue, tracker, executor, diagnosis, parts.reconcileInterval());
    }

    private Lookout lookout() {
        return new Lookout(
                new LookoutStore(parts.schema()),
                this::isListening,
                Map.of(
                        Subject.PAUSES, () -> pauses.announced(),
                        Subject.LIMITS, () -> limits.announced(),
                        Subject.SCHEDULES, () -> recurring.schedules().announced(),
                        Subject.CANCELLATIONS, () -> cancels.beat(),
                        Subject.CONTINUATIONS, () -> recurring.continuations().announced()));
    }

    private void cancelsMayHaveBeenMissed() {
        if (lookout.hearing(Subject.CANCELLATIONS) != Hearing.LOOKOUT) {
            cancels.beat();
        }
    }

    private NotificationListener listener(JobAnnouncements announcements, AnnouncedClaims announced) {
        return new NotificationListener(
                context,
                parts.listenDataSource(),
                announcements,
                new NotificationListener.Told(
                        context.signal()::jobsMayBeDue,
                        announced::claim,
                        lookout,
                        Map.of(
                                "worker:migrate", text -> migrations.migrationAnnounced(),
                                "pgworker:schedules",
                                        text -> recurring.schedules().announced(),
                                "pgworker:pauses", text -> pauses.announced(),
                                "pgworker:ends", ResultWaits::announced,
                                "pgworker:continue",
                                        text -> recurring.continuations().announced(),
                                "pgworker:cancel", text -> cancels.announced(text == null ? "" : text),
                                "pgworker:limits",
                                        text -> {
                                            if (text == null || text.equals("s")) {
                                                limits.announced();
                                            }
                                            context.signal().limitsMayAllow();
                                        })));
    }

    private void polls() {
        direct.poll();
        if (!parts.settings().listen()) {
            assumeNews();
        }
    }

    /** Where nothing is announced anything may have happened between two polls. */
    private void assumeNews() {
        allDue.forEach(DueJobs::forget);
        migrations.migrationAnnounced();
        context.signal().jobsMayBeDue();
    }

    private LimitKeeper limits() {
        Set<String> served = parts.tasks().identifiers();
        JdbcJobLimits client = new JdbcJobLimits(parts.dataSource(), parts.schema(), context.events());
        return new LimitKeeper(
                context,
                new LimitStore(parts.dataSource(), parts.schema()),
                new DeclaredLimits(client, parts.limits(), served),
                any -> {
                    limitedClaims.know(any);
                    context.signal().limitsMayAllow();
                },
                served,
                held,
                () -> lookout.hearing(Subject.LIMITS));
    }

    /** Starts all services. */
    void start() {
        expectParts();
        limits.begin();
        // Jobs wait until it is known whether a history is kept, what is paused, and what limits there are.
        periodic.start(history);
        periodic.start(pauses);
        periodic.start(limits);
        ofOwnThread().forEach(BackgroundService::start);
        Stream<@Nullable PeriodicService> others =
                Stream.of(migrations, reconciler, looks, snapshots, unservedTasks, vacuum);
        Stream.concat(others, recurring.all()).filter(Objects::nonNull).forEach(periodic::start);
    }

    private void expectParts() {
        Started started = context.started();
        started.expect(Part.REGISTRATION, Part.CLAIMS);
        if (listener != null) {
            started.expect(Part.LISTENER);
        }
        recurring.expectParts();
        if (!parts.limits().isEmpty()) {
            started.expect(Part.LIMITS);
        }
    }

    /** Returns the services with a thread of their own, in the order in which they start. */
    private Stream<BackgroundService> ofOwnThread() {
        Stream<@Nullable BackgroundService> first = Stream.of(heartbeat, watchdog, completer, listener, claimLoop);
        Stream<@Nullable BackgroundService> last = Stream.of(cancels, record);
        return Stream.concat(Stream.concat(first, direct.services()), last).filter(Objects::nonNull);
    }

    /** Returns all services. */
    Stream<Service> all() {
        return Stream.concat(ofOwnThread(), periodic.services().stream());
    }
}
