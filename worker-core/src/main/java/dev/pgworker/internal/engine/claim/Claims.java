package dev.pgworker.internal.engine.claim;

import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import java.util.Set;

import org.jspecify.annotations.Nullable;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;
import org.slf4j.Logger;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.floor.Floors;
import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.engine.run.JobExecutor;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.store.ClaimRequest;
import dev.pgworker.internal.store.ClaimStore;
import dev.pgworker.internal.store.ClaimStore.First;
import dev.pgworker.internal.store.Claimed;
import dev.pgworker.internal.store.Floor;
import dev.pgworker.internal.store.Look;

/**
 * Claims jobs for one worker and hands them to its executor. A claim that fails is repeated for half as many jobs, down to one, which is
 * passed over if it alone is to blame.
 *
 * <p>Owned by the thread that claims, but for methods whose comment allows others.
 */
public final class Claims {

    private static final Logger log = WorkerLog.of(Claims.class);

    /** How long the database may take for a look at all jobs. */
    private static final Duration LOOK_LIMIT = Duration.ofMinutes(1);

    /** Claims of more jobs take turns. */
    private static final int MOST_WITHOUT_TURN = 49;

    /** After so many claims that succeed one may ask for twice as many again. */
    private static final int SUCCESSES = 4;

    /** After so many failures in a row for reasons that may pass a job may be to blame. */
    private static final int MOST_OBSTRUCTIONS = 5;

    /** How long to leave out jobs of queues where the table of queues is locked. */
    private static final long QUEUES_LEFT_OUT_NANOS = Duration.ofSeconds(5).toNanos();

    private static final int CANCELLATIONS = 10;
    private static final Duration BETWEEN_CANCELLATIONS = Duration.ofMillis(100);

    private final WorkerContext context;
    private final ClaimStore store;
    private final ClaimPermission permission;
    private final LocalQueue localQueue;
    private final DueJobs due;
    private final ClaimTracker tracker;
    private final JobExecutor executor;
    private final PassedOver passedOver = new PassedOver();

    /** How many jobs a claim may ask for after failures. */
    private int limit = Integer.MAX_VALUE;

    private int successes;
    private int obstructions;
    private Set<String> forbidden = Set.of();

    /** Until when jobs of queues are left out, by {@link System#nanoTime}; null for never. */
    private @Nullable Long queuesFrom;

    /** Creates what claims for one worker. */
    public Claims(
            WorkerContext context,
            ClaimStore store,
            ClaimPermission permission,
            LocalQueue localQueue,
            DueJobs due,
            ClaimTracker tracker,
            JobExecutor executor) {
        this.context = context;
        this.store = store;
        this.permission = permission;
        this.localQueue = localQueue;
        this.due = due;
        this.tracker = tracker;
        this.executor = executor;
    }

    /**
     * How a claim went.
     *
     * @param count how many jobs it brought
     * @param full whether there may be more
     * @param again whether it is worth claiming again soon, because a row was locked for the moment, or there may be
     *     more
     */
    public record Result(int count, boolean full, boolean again) {

        static final Result NONE = new Result(0, false, false);
    }

    /** Looks up the tasks whose jobs are to be claimed. */
    public void learnTasks() throws SQLException {
        if (permission.tasks().learn()) {
            permission.tasks().direct().learned();
        }
    }

    Set<String> identifiers() {
        return permission.tasks().identifiers();
    }

    /** Gives back what has waited too long for a handler, and starts what could not be started before. */
    public void tend() {
        executor.giveBackExpired();
        executor.startMissingRunners();
    }

    // Claims

    /**
     * Claims jobs. Where the database refuses that, the answer is that there may be more: the next claim finds out which.
     *
     * @param room how many there is room for, at least one
     * @throws ForbiddenFlagsException if it is unknown which jobs may be claimed
     */
    public Result claim(int room) throws SQLException {
        if (permission.tasks().ordinary().identifiers().isEmpty()) {
            return Result.NONE;
        }
        forbidden = Set.copyOf(permission.flags().get());
        if (passedOver.retry()) {
            due.forget();
        }
        int wanted = Math.min(room, limit);
        try (Floors.Reading reading = publishingFailures(() -> due.begin(forbidden))) {
            ClaimRequest request = request(wanted);
            context.publish(() -> new WorkerEvent.FetchStarted(context.workerId(), wanted));
            try {
                return claim(request, wanted, reading);
            } catch (SQLException | RuntimeException | Error e) {
                publishFailure(e);
                return failed(request, wanted, reading, e);
            }
        }
    }

    private ClaimRequest request(int wanted) {
        return new ClaimRequest(
                permission.tasks().ordinary(),
                forbidden,
                task -> localQueue.runOf(task, wanted),
                localQueue.share(),
                !due.areLooksDear(),
                passedOver.ids());
    }

    private Result claim(ClaimRequest request, int wanted, Floors.Reading reading) throws SQLException {
        long before = System.nanoTime();
        Claimed claimed = tracker.during(() -> {
            Claimed answer = store.claim(request, wanted, floors(reading));
            executor.submit(answer);
            return answer;
        });
        Duration took = Duration.ofNanos(System.nanoTime() - before);
        publish(claimed.size());
        obstructions = 0;
        if (limit < Integer.MAX_VALUE && ++successes >= SUCCESSES) {
            limit = limit > wanted ? Integer.MAX_VALUE : 2 * limit;
            successes = 0;
        }
        passedOver.claimed(
                () -> claimed.jobs().stream().map(one -> one.job().id()).iterator());
        boolean full = claimed.size() >= wanted;
        localQueue.claimed(claimed, full);
        if (claimed.unreadable().isEmpty()) {
            DueJobs.raise(reading, claimed, full, took);
        }
        return new Result(claimed.size(), full, claimed.again() || areQueuesLeftOut());
    }

    private Collection<Floor> floors(Floors.Reading reading) {
        return areQueuesLeftOut()
                ? reading.floors().stream()
                        .filter(floor -> !floor.kind().queued())
                        .toList()
                : reading.floors();
    }

    private boolean areQueuesLeftOut() {
        return queuesFrom != null && System.nanoTime() - queuesFrom < 0;
    }

    /** Decides what the next claim asks for; throws what is not to be repeated at once. */
    private Result failed(ClaimRequest request, int wanted, Floors.Reading reading, Throwable e) throws SQLException {
        successes = 0;
        DatabaseFailure kind = DatabaseFailure.of(e);
        String state = e instanceof SQLException sql ? sql.getSQLState() : null;
        if ("55P03".equals(state) && wanted > MOST_WITHOUT_TURN) {
            limit = MOST_WITHOUT_TURN;
            return new Result(0, true, false);
        }
        if ("55P03".equals(state) && !areQueuesLeftOut()) {
            queuesFrom = System.nanoTime() + QUEUES_LEFT_OUT_NANOS;
            return new Result(0, true, false);
        }
        boolean raised = isRaised(e);
        boolean outage = !raised && kind == DatabaseFailure.OUTAGE && !DatabaseFailure.isAnswer(e);
        boolean mayPass = !raised && kind != DatabaseFailure.REFUSED && kind != DatabaseFailure.INTERNAL;
        if (outage || DatabaseFailure.isMissingSchema(e) || (mayPass && ++obstructions < MOST_OBSTRUCTIONS)) {
            return rethrow(e);
        }
        if (wanted > 1) {
            log.debug("A claim of {} jobs failed; the next one asks for half as many", wanted, e);
            limit = wanted / 2;
        } else {
            First first = store.first(request, reading.floors());
            if (first == null) {
                return rethrow(e);
            }
            passedOver.add(first, e);
        }
        return raised || kind == DatabaseFailure.REFUSED ? new Result(0, true, false) : rethrow(e);
    }

    /** What a user's trigger raises concerns a row, whatever its SQLSTATE is. */
    static boolean isRaised(Throwable e) {
        ServerErrorMessage answer = e instanceof PSQLException sql ? sql.getServerErrorMessage() : null;
        return answer != null && "exec_stmt_raise".equals(answer.getRoutine());
    }

    static Result rethrow(Throwable e) throws SQLException {
        if (e instanceof SQLException sql) {
            throw sql;
        } else if (e instanceof Error error) {
            throw error;
        }
        throw (RuntimeException) e;
    }

    /** Claims those of these jobs that this worker may run; returns how many. */
    int claimAnnounced(List<Long> ids) throws SQLException {
        if (permission.tasks().ordinary().identifiers().isEmpty()) {
            return 0;
        }
        forbidden = Set.copyOf(permission.flags().get());
        context.publish(() -> new WorkerEvent.FetchStarted(context.workerId(), ids.size()));
        Claimed claimed = tracker.during(() -> {
            Claimed answer = store.claimIds(request(ids.size()), ids);
            executor.submit(answer);
            return answer;
        });
        publish(claimed.size());
        return claimed.size();
    }

    /**
     * Returns whether a job that this worker may run has been due for longer than that, and no worker holds it: one that could be claimed
     * is due, or a session is in the way. May be called from any thread.
     *
     * @param asked on whose connections
     * @param holding how long a session has to be in the way
     */
    public boolean jobsWait(Duration longerThan, ClaimStore asked, Duration holding) throws SQLException {
        if (due.foundNothingRecently()) {
            return false;
        }
        ClaimRequest request = ClaimRequest.of(permission.tasks().ordinary(), forbiddenIfKnown());
        Look look = asked.look(request, null, LOOK_LIMIT);
        Instant before = look.at().minus(longerThan);
        if (look.first().values().stream().noneMatch(first -> first.runAt().isBefore(before))) {
            return false;
        }
        First first = asked.first(request, look.first().values());
        return first == null
                ? asked.holders(request, holding) != null
                : first.runAt().isBefore(before);
    }

    /**
     * Returns who has been in the way of claims for longer than that; null if none is found. May be called from any
     * thread.
     *
     * @param asked on whose connections
     */
    public @Nullable String holders(ClaimStore asked, Duration longerThan) throws SQLException {
        return asked.holders(ClaimRequest.of(permission.tasks().ordinary(), forbiddenIfKnown()), longerThan);
    }

    /** Returns one of the jobs that cannot be claimed, and why; null if none is known. May be called from any thread. */
    public @Nullable String refusal() {
        return passedOver.example();
    }

    private Collection<String> forbiddenIfKnown() {
        try {
            return permission.flags().get();
        } catch (ForbiddenFlagsException e) {
            return List.of();
        }
    }

    // The end

    /** Ends claims that are under way or about to begin, after the last one was asked for. Returns at once. */
    public void cancel() {
        try {
            Thread thread = new Thread(this::cancelNow, "worker-claim-cancel");
            thread.setDaemon(true);
            thread.start();
        } catch (Error e) {
            log.warn("No thread is available to cancel a claim; it may take effect after the worker has stopped", e);
        }
    }

    /** The server may not answer, and ignores a cancellation that comes before the statement. */
    private void cancelNow() {
        try {
            for (int i = 0; i < CANCELLATIONS && store.cancelClaims(); i++) {
                Thread.sleep(BETWEEN_CANCELLATIONS.toMillis());
            }
        } catch (SQLException e) {
            log.debug("The claim could not be cancelled", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void publish(int count) {
        publish(context, count);
    }

    static void publish(WorkerContext context, int count) {
        context.publish(() -> count == 0
                ? new WorkerEvent.FetchEmpty(context.workerId())
                : new WorkerEvent.JobsFetched(context.workerId(), count));
    }

    /** Makes a look that belongs to a claim. */
    <T> T publishingFailures(Looking<T> look) throws SQLException {
        try {
            return look.look();
        } catch (SQLException | RuntimeException | Error e) {
            publishFailure(e);
            throw e;
        }
    }

    /** A look at where jobs are due. */
    @FunctionalInterface
    interface Looking<T> {
        T look() throws SQLException;
    }

    private void publishFailure(Throwable e) {
        publishFailure(context, e);
    }

    static void publishFailure(WorkerContext context, Throwable e) {
        Exception error = e instanceof Exception exception ? exception : new IllegalStateException(e);
        context.publish(() -> new WorkerEvent.FetchFailed(context.workerId(), error));
    }
}
