package dev.pgworker.internal.limit;

import java.sql.SQLException;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.engine.HeldBack;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.failure.Obstacle;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.limit.LimitSignals.Told;
import dev.pgworker.internal.store.LimitStore;
import dev.pgworker.internal.store.LimitStore.Admission;
import dev.pgworker.internal.store.LimitStore.Look;
import dev.pgworker.internal.store.LimitStore.Request;

/**
 * Lets jobs of limited tasks through, on {@code worker-limits}: as soon as somebody tells of a job or of a permit, when a lane's time
 * has come, and by looks at everything, which find what nobody has told. All workers do the same, and the database lets one at a
 * time; those that come later in their order wait some milliseconds, and mostly find that nothing is left to do.
 */
public final class LimitGate extends BackgroundService {

    private static final Logger log = LoggerFactory.getLogger(LimitGate.class);

    /** How many jobs to let through with one statement: while it works, nobody else does. */
    private static final int MOST_ADMITTED = 500;

    /** Between two statements, so that permits given back meanwhile are dealt with together. */
    private static final long PACE_NANOS = TimeUnit.MILLISECONDS.toNanos(2);

    /** By how much each worker comes after the one before it. */
    private static final long RANK_NANOS = TimeUnit.MILLISECONDS.toNanos(25);

    private static final int MOST_RANKS = 10;

    /** Between two looks at everything by the first worker. */
    private static final long WALK_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** The same where one has found something. */
    private static final long SHORT_WALK_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private static final String LOCK_NOT_AVAILABLE = "55P03";

    /** So long others may have the lock of the gates before it is worth a word. */
    private static final Duration LONG_HELD = Duration.ofSeconds(5);

    /** Before the next try, in which those who are in the way may end. */
    private static final long HELD_UP_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    private static final String HELD =
            "other sessions hold the lock of limits, a row of pgworker_limit_state, or lock their tables. pg_locks and pg_blocking_pids show which:"
                    + " end it if it is the same one all the time; if gates of other workers take turns, the server has too"
                    + " much to do";

    /** What a missing right or function calls for. */
    static final String RIGHTS = ". Migrate the schema, and grant the worker's role the rights of docs/schema.md";

    private static final long UNTIL_WOKEN_NANOS = TimeUnit.HOURS.toNanos(1);

    private final WorkerContext context;
    private final LimitStore store;
    private final Set<String> served;
    private final HeldBack held;
    private final LimitSignals signals = new LimitSignals();
    private final Obstacle obstacle = new Obstacle(LONG_HELD);

    /** Written by the keeper. */
    private volatile @Nullable Look limits;

    // Owned by the thread.
    private final LaneTimes times = new LaneTimes();
    private @Nullable String walkedTo;
    private long walkAt = System.nanoTime();
    private long notBefore = System.nanoTime();

    /**
     * Creates the gate of one worker.
     *
     * @param served the tasks that the worker serves
     * @param held says which tasks are paused, of which other workers may let jobs through
     */
    public LimitGate(WorkerContext context, LimitStore store, Set<String> served, HeldBack held) {
        super("worker-limits", true, context.outage());
        this.context = context;
        this.store = store;
        this.served = Set.copyOf(served);
        this.held = held;
    }

    /**
     * Takes in a notification. Never waits; may be called from any thread, by anybody and as often as they like.
     *
     * @param text null where notifications may have been missed
     */
    public void told(@Nullable String text) {
        if (limits != null && signals.tell(text)) {
            wake();
        }
    }

    /** Says what limits there are; null for none. */
    void know(@Nullable Look look) {
        boolean changed = !look(look).equals(look(limits));
        limits = look;
        if (changed) {
            boolean unused = signals.tell(null);
            wake();
        }
    }

    /** What does not matter here is left out. */
    private static Object look(@Nullable Look look) {
        return look == null ? "none" : look.limits();
    }

    @Override
    protected void step() throws SQLException, InterruptedException {
        Look known = limits;
        if (known == null) {
            pause(UNTIL_WOKEN_NANOS);
            return;
        }
        long now = System.nanoTime();
        long wait = nanosToWork(known, now);
        if (wait > 0) {
            pause(wait);
            return;
        }
        long early = notBefore - now;
        if (early > 0) {
            idle(() -> {
                TimeUnit.NANOSECONDS.sleep(early);
                return early;
            });
        }
        notBefore = work(known) + System.nanoTime();
    }

    /** Returns how long there is nothing to do for a worker of this rank. */
    private long nanosToWork(Look known, long now) {
        int rank = Math.min(MOST_RANKS, known.rank());
        long wait = walkedTo != null ? 0 : Math.max(0, walkAt - now);
        wait = Math.min(wait, times.nanosToNext(now, UNTIL_WOKEN_NANOS) + rank * RANK_NANOS);
        long age = signals.age();
        return age < 0 ? wait : Math.min(wait, Math.max(0, rank * RANK_NANOS - age));
    }

    /** Does what there is to do; returns when to go on at the earliest. */
    private long work(Look known) throws SQLException {
        long now = System.nanoTime();
        Told told = signals.take();
        Set<String> lanes = new HashSet<>(told.lanes());
        lanes.addAll(times.take(now));
        boolean walk = told.everything() || walkedTo != null || walkAt - now <= 0;
        Told asked = new Told(lanes, told.buckets(), told.everything());
        long admitted;
        try {
            admitted = admit(known, asked, walk);
        } catch (SQLException | RuntimeException | Error e) {
            signals.putBack(asked);
            noteObstacle(e);
            if (isHeldUp(e)) {
                return HELD_UP_NANOS;
            }
            throw e;
        }
        obstacle.passed();
        if (admitted >= MOST_ADMITTED) {
            signals.putBack(asked);
        } else if (walk && walkedTo == null) {
            // Where nobody tells anything, the next ones may follow soon.
            walkAt = now + (admitted > 0 ? SHORT_WALK_NANOS : WALK_NANOS * (1 + Math.min(MOST_RANKS, known.rank())));
        }
        return PACE_NANOS;
    }

    /** Of many workers on a busy server some wait in vain now and then, which is no failure. */
    private static boolean isHeldUp(Throwable e) {
        return e instanceof SQLException sql && LOCK_NOT_AVAILABLE.equals(sql.getSQLState());
    }

    /** Gates have the lock for some milliseconds each, so whoever has it for longer is none. */
    private void noteObstacle(Throwable e) {
        switch (DatabaseFailure.of(e)) {
            case CANCELLED -> {
                if (obstacle.met(HELD)) {
                    log.warn(
                            "This worker has let no job that waits for a limit start for some seconds: {}. It keeps trying",
                            HELD);
                }
            }
            case REFUSED, INTERNAL -> {
                boolean untold = obstacle.met(ErrorText.headline(e)
                        + (e instanceof SQLException sql && DatabaseFailure.isAboutTheSchema(sql) ? RIGHTS : ""));
                log.debug("Jobs that wait for a limit are not let through; told: {}", untold, e);
            }
            case OUTAGE, CONFLICT -> {}
        }
    }

    /** Returns why no job that waits for a limit is let through by this worker, with the remedy; null if that is not so. */
    public @Nullable String obstacle() {
        return limits == null ? null : obstacle.reason();
    }

    private long admit(Look known, Told asked, boolean walk) throws SQLException {
        Admission admission = store.admit(new Request(
                known.limited(served).stream()
                        .filter(task -> !held.isPaused(task))
                        .toList(),
                asked.lanes(),
                asked.buckets(),
                walk,
                walkedTo,
                MOST_ADMITTED));
        if (walk && admission.admitted() < MOST_ADMITTED) {
            walkedTo = admission.nextAfter();
        }
        times.forget(asked.lanes().stream().map(LimitSignals::lane).toList());
        long now = System.nanoTime();
        admission.waits().forEach((lane, seconds) -> times.put(lane, seconds, now));
        if (admission.admitted() > 0) {
            context.events().publish(new WorkerEvent.JobsAdmitted(context.workerId(), admission.admitted()));
        }
        return admission.admitted();
    }

    /**
     * Lets through all that may start now, on the calling thread; for a worker whose services do not run.
     *
     * @return how many jobs
     */
    public long admitOnce() throws SQLException {
        Look known = limits;
        if (known == null) {
            return 0;
        }
        Told nothing = new Told(Set.of(), Set.of(), false);
        long all = 0;
        walkedTo = null;
        while (true) {
            long admitted = admit(known, nothing, true);
            all += admitted;
            if (admitted < MOST_ADMITTED && walkedTo == null) {
                return all;
            }
        }
    }
}
