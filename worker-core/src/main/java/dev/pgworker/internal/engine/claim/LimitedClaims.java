package dev.pgworker.internal.engine.claim;

import java.sql.SQLException;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.claim.Claims.Result;
import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.engine.run.JobExecutor;
import dev.pgworker.internal.failure.Backoff;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.failure.Obstacle;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.store.ClaimRequest;
import dev.pgworker.internal.store.ClaimStore;
import dev.pgworker.internal.store.ClaimStore.First;
import dev.pgworker.internal.store.Claimed;

/**
 * Claims jobs of limited tasks: at a notice that one waits or that a permit is free, when time brings one, and at each
 * poll. What keeps it from that delays jobs of other tasks by a tenth of a second at most, and ever more rarely.
 *
 * <p>Owned by the thread that claims, but for methods whose comment allows others.
 */
public final class LimitedClaims {

    private static final Logger log = WorkerLog.of(LimitedClaims.class);

    /** So long others may have the turn before it is worth a word. */
    private static final Duration LONG_HELD = Duration.ofSeconds(5);

    private static final long SOON_NANOS = TimeUnit.MILLISECONDS.toNanos(2);
    private static final long NEVER = Long.MAX_VALUE;

    private static final String HELD =
            "other sessions lock tables or rows of limits. pg_locks and pg_blocking_pids show which: end it if it is the same one"
                    + " all the time; if claims of other workers take turns, the server has too much to do";

    private final WorkerContext context;
    private final ClaimStore store;
    private final ClaimPermission permission;
    private final LocalQueue localQueue;
    private final ClaimTracker tracker;
    private final JobExecutor executor;
    private final PassedOver passedOver = new PassedOver();
    private final Obstacle obstacle = new Obstacle(LONG_HELD);

    /** How soon to claim again after a failure, each time later: meanwhile jobs of other tasks are claimed. */
    private final Backoff failures = new Backoff(Duration.ofMillis(50), Duration.ofSeconds(2));

    /** Whether any of the worker's tasks has a limit. */
    private volatile boolean any;

    /** Set by any thread when a job may start that the last claim did not see. */
    private final AtomicBoolean told = new AtomicBoolean();

    /** When one may start by then at the latest, by {@link System#nanoTime}; null if that is unknown. */
    private volatile @Nullable Long nextAt;

    /** How many jobs a claim may ask for after failures. */
    private int limit = Integer.MAX_VALUE;

    /** Creates what claims for one worker. */
    public LimitedClaims(
            WorkerContext context,
            ClaimStore store,
            ClaimPermission permission,
            LocalQueue localQueue,
            ClaimTracker tracker,
            JobExecutor executor) {
        this.context = context;
        this.store = store;
        this.permission = permission;
        this.localQueue = localQueue;
        this.tracker = tracker;
        this.executor = executor;
    }

    /** Notes whether any of the worker's tasks has a limit. May be called from any thread. */
    public void know(boolean limited) {
        any = limited;
        told.set(true);
    }

    /** Notes that a job may start. May be called from any thread. */
    void tell() {
        told.set(true);
    }

    /** Returns why no limited job can be claimed, with the remedy; null while nothing is known to be in the way. */
    public @Nullable String obstacle() {
        return any ? obstacle.reason() : null;
    }

    /** Returns how long until a claim is worth while, at most zero if one is now. */
    long nanosUntilDue() {
        Long at = nextAt;
        if (!any) {
            return NEVER;
        }
        return told.get() ? 0 : at == null ? NEVER : at - System.nanoTime();
    }

    /**
     * Claims jobs.
     *
     * @param room how many there is room for, at least one
     * @throws ForbiddenFlagsException if it is unknown which jobs may be claimed
     */
    public Result claim(int room) throws SQLException {
        if (!any || permission.tasks().all().identifiers().isEmpty()) {
            return Result.NONE;
        }
        boolean unused = passedOver.retry();
        int wanted = Math.min(localQueue.limitedOf(room), limit);
        if (wanted == 0) {
            return Result.NONE;
        }
        told.set(false);
        nextAt = null;
        ClaimRequest request = ClaimRequest.of(
                permission.tasks().all(), Set.copyOf(permission.flags().get()), passedOver.ids());
        context.publish(() -> new WorkerEvent.FetchStarted(context.workerId(), wanted));
        try {
            Claimed claimed = tracker.during(() -> {
                Claimed answer = store.claimLimited(request, wanted);
                executor.submit(answer);
                return answer;
            });
            return succeeded(claimed, wanted);
        } catch (SQLException | RuntimeException | Error e) {
            Claims.publishFailure(context, e);
            nextAt = System.nanoTime() + failures.next().toNanos();
            return failed(request, wanted, e);
        }
    }

    private Result succeeded(Claimed claimed, int wanted) {
        Claims.publish(context, claimed.size());
        obstacle.passed();
        failures.reset();
        limit = limit > wanted ? Integer.MAX_VALUE : 2 * limit;
        passedOver.claimed(
                () -> claimed.jobs().stream().map(one -> one.job().id()).iterator());
        boolean full = claimed.size() >= wanted;
        if (full) {
            told.set(true);
        } else if (claimed.again()) {
            nextAt = System.nanoTime() + SOON_NANOS;
        } else if (claimed.untilNext() != null) {
            nextAt = System.nanoTime()
                    + Math.max(
                            0,
                            Math.min(claimed.untilNext().toSeconds(), 3600) * 1_000_000_000L
                                    + claimed.untilNext().toNanosPart());
        }
        return new Result(claimed.size(), full, claimed.again());
    }

    /** Decides what the next claim asks for; throws what is not to be repeated at once. */
    private Result failed(ClaimRequest request, int wanted, Throwable e) throws SQLException {
        DatabaseFailure kind = DatabaseFailure.of(e);
        boolean raised = Claims.isRaised(e);
        if (!raised && kind == DatabaseFailure.OUTAGE && !DatabaseFailure.isAnswer(e)) {
            return Claims.rethrow(e);
        }
        boolean schema = e instanceof SQLException sql && DatabaseFailure.isAboutTheSchema(sql);
        if ((raised || kind == DatabaseFailure.REFUSED || kind == DatabaseFailure.INTERNAL) && !schema) {
            log.debug("A claim of {} limited jobs failed; the next one asks for half as many", wanted, e);
            First first = wanted > 1 ? null : store.firstLimited(request);
            limit = Math.max(1, wanted / 2);
            if (first != null) {
                passedOver.add(first, e);
            }
        } else {
            String why = schema
                    ? ErrorText.headline(e)
                            + ". Migrate the schema, and grant the worker's role the rights of docs/schema.md"
                    : HELD;
            if (obstacle.met(why)) {
                log.warn("This worker has claimed no limited job for some seconds: {}. It keeps trying", why);
            }
            return Result.NONE;
        }
        return new Result(0, false, true);
    }
}
