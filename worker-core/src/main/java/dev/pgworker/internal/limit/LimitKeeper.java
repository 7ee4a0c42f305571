package dev.pgworker.internal.limit;

import java.sql.SQLException;
import java.time.Duration;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.event.Level;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.argument.LogText;
import dev.pgworker.internal.engine.HeldBack;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.failure.Obstacle;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.Hearing;
import dev.pgworker.internal.lifecycle.PeriodicService;
import dev.pgworker.internal.lifecycle.Started;
import dev.pgworker.internal.store.LimitStore;
import dev.pgworker.internal.store.LimitStore.Known;
import dev.pgworker.internal.store.LimitStore.Left;

/**
 * Keeps the limits of the database, on {@code worker-limit-keeper}: puts those that the application declares, makes those that are new,
 * changed or deleted hold for the jobs that are there, and reports to what claims jobs whether there are any.
 */
public final class LimitKeeper extends PeriodicService {

    private static final Logger log = WorkerLog.of(LimitKeeper.class);

    /** Between two looks: those who change a limit may not be heard. */
    private static final Duration INTERVAL = Duration.ofSeconds(5);

    /** The same without a listener connection. */
    private static final Duration DEAF_INTERVAL = Duration.ofSeconds(1);

    /**
     * The same while there are no limits, and the lookout watches whether that changes, or the table cannot be used.
     */
    private static final Duration LONG_INTERVAL = Duration.ofMinutes(1);

    /** How long jobs wait at the start for it to be known what limits there are. */
    private static final Duration LONGEST_WAIT = Duration.ofSeconds(2);

    /** How long to wait for others that are in the way, or do the same. */
    private static final Duration BUSY = Duration.ofMillis(100);

    /** How long a single pass waits for them. */
    private static final Duration LONGEST_BUSY = Duration.ofSeconds(10);

    /** The same if they have open transactions. */
    private static final Duration LATER = Duration.ofSeconds(1);

    /** However much is announced, there is one look in that time. */
    private static final long SHORTEST_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    private static final String LOCKED =
            "the tables of limits cannot be read or written, so jobs with a limit may not start."
                    + " Some session may have locked them; pg_locks tells which";

    private static final String RIGHTS =
            ". Migrate the schema, and grant the worker's role the rights of docs/schema.md";

    private final WorkerContext context;
    private final LimitStore store;
    private final DeclaredLimits declared;
    private final Consumer<Boolean> limited;
    private final Set<String> served;
    private final HeldBack held;
    private final Supplier<Hearing> hearing;
    private final AtomicBoolean announced = new AtomicBoolean();
    private final long createdAt = System.nanoTime();

    /** In the way of using limits, which has been given time already. */
    private final Obstacle unusable = new Obstacle(Duration.ZERO);

    private volatile boolean known;

    // Owned by the work.
    private long lookedAt = System.nanoTime() - SHORTEST_NANOS;
    private @Nullable Map<String, Known> before;

    /**
     * Creates the service of one worker.
     *
     * @param declared put into the database before anything else
     * @param limited told whether any of the tasks has a limit
     * @param served the tasks that the worker serves
     * @param held told which tasks must not start before their limits are in the database
     * @param hearing who calls {@link #announced} when limits have changed
     */
    public LimitKeeper(
            WorkerContext context,
            LimitStore store,
            DeclaredLimits declared,
            Consumer<Boolean> limited,
            Set<String> served,
            HeldBack held,
            Supplier<Hearing> hearing) {
        super("worker-limit-keeper", "keep the limits of jobs", context.outage());
        this.context = context;
        this.store = store;
        this.declared = declared;
        this.limited = limited;
        this.served = served;
        this.held = held;
        this.hearing = hearing;
    }

    /** Returns whether jobs need not wait any longer for it to be known what limits there are. */
    public boolean isKnown() {
        return known || System.nanoTime() - createdAt >= LONGEST_WAIT.toNanos();
    }

    /** Has the tasks of declared limits wait until these are in the database; called before the worker claims anything. */
    public void begin() {
        holdBack();
    }

    /** Notes that limits may have changed. Never waits; may be called from any thread at any time. */
    public void announced() {
        if (announced.compareAndSet(false, true)) {
            wake();
        }
    }

    /** Does one piece of work. */
    @Override
    protected Duration work() throws SQLException {
        long early = SHORTEST_NANOS - (System.nanoTime() - lookedAt);
        if (wasWoken() && early > 0) {
            return Duration.ofNanos(early);
        }
        announced.set(false);
        lookedAt = System.nanoTime();
        try {
            Left left = keep();
            unusable.passed();
            becomeKnown();
            return switch (left) {
                case MORE -> Duration.ZERO;
                case BUSY -> BUSY;
                case LATER -> LATER;
                case DONE -> pause();
            };
        } catch (SQLException e) {
            if (!DatabaseFailure.isAboutTheSchema(e)) {
                tellLocked(e);
                throw e;
            }
            tellUnusable(e);
            limited.accept(declared.exist());
            becomeKnown();
            return declared.exist() ? INTERVAL : LONG_INTERVAL;
        }
    }

    private Left keep() throws SQLException {
        declared.put();
        Map<String, Known> limits = store.read();
        declared.compare(limits);
        holdBack();
        tellChanged(limits);
        limited.accept(limits.values().stream().anyMatch(limit -> !Collections.disjoint(limit.tasks(), served)));
        return store.apply();
    }

    private Duration pause() {
        if (declared.obstacle() != null) {
            return INTERVAL;
        }
        return switch (hearing.get()) {
            case NOTHING -> DEAF_INTERVAL;
            case NOTIFICATIONS -> INTERVAL;
            case LOOKOUT -> before == null || before.isEmpty() ? LONG_INTERVAL : INTERVAL;
        };
    }

    private void becomeKnown() {
        if (!known) {
            known = true;
            context.signal().leaseChanged();
        }
        if (declared.heldBack().isEmpty()) {
            context.started().done(Started.Part.LIMITS);
        }
    }

    private void holdBack() {
        held.hold(HeldBack.Reason.LIMIT, new HeldBack.Part(false, declared.heldBack(), Set.of()));
    }

    private void tellChanged(Map<String, Known> limits) {
        Map<String, Known> last = before;
        before = limits;
        if (last == null) {
            return;
        }
        limits.forEach((name, limit) -> {
            Known earlier = last.get(name);
            if (limit.state().equals("active")
                    && (earlier == null || !earlier.state().equals("active"))) {
                tell(name, false);
            }
        });
        last.keySet().stream().filter(name -> !limits.containsKey(name)).forEach(name -> tell(name, true));
    }

    private void tell(String name, boolean removed) {
        log.info("Limit \"{}\" {}", LogText.visible(name), removed ? "is removed" : "is in effect");
        context.events().publish(new WorkerEvent.LimitApplied(context.workerId(), name, removed));
    }

    /** Returns why limits do not take effect, with the remedy; null if they do. Where there are none, that does not matter. */
    public @Nullable String obstacle() {
        String first = declared.obstacle();
        return first == null && (declared.exist() || before != null) ? unusable.reason() : first;
    }

    /** Does on the calling thread what has to be done before jobs are claimed; for a worker whose services do not run. */
    public void applyOnce() throws SQLException, InterruptedException {
        try {
            long until = System.nanoTime() + LONGEST_BUSY.toNanos();
            for (Left left = keep(); left == Left.MORE || left == Left.BUSY; left = keep()) {
                if (left == Left.BUSY && System.nanoTime() - until > 0) {
                    return; // jobs of limits that are not in effect are not claimed
                } else if (left == Left.BUSY) {
                    Thread.sleep(BUSY.toMillis());
                }
            }
        } catch (SQLException e) {
            if (!DatabaseFailure.isAboutTheSchema(e)) {
                throw e;
            }
            tellUnusable(e);
        }
    }

    /** The statement is cancelled when its time is over: the tables are small. */
    private void tellLocked(SQLException e) {
        if (DatabaseFailure.of(e) != DatabaseFailure.CANCELLED) {
            return;
        }
        // Jobs of other tasks run: what a stranger's lock holds up is no reason to keep the application out of traffic.
        context.started().done(Started.Part.LIMITS);
        if (unusable.met("limits cannot be used: " + LOCKED)) {
            log.warn("Limits cannot be used: {}", LOCKED);
        }
    }

    private void tellUnusable(SQLException e) {
        String why = ErrorText.headline(e) + RIGHTS;
        if (unusable.met("limits cannot be used: " + why)) {
            log.atLevel(declared.exist() ? Level.ERROR : Level.INFO).log("Limits cannot be used: {}", why);
        }
    }
}
