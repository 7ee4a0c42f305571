package dev.pgworker.internal.limit;

import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.argument.LogText;
import dev.pgworker.internal.engine.HeldBack;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.Obstacle;
import dev.pgworker.internal.lifecycle.Hearing;
import dev.pgworker.internal.lifecycle.PeriodicService;
import dev.pgworker.internal.lifecycle.Started;
import dev.pgworker.internal.store.LimitStore;
import dev.pgworker.internal.store.LimitStore.Known;
import dev.pgworker.internal.store.LimitStore.Look;
import dev.pgworker.internal.store.LimitStore.Step;

/**
 * Keeps the limits of the database, on {@code worker-limit-keeper}: puts those that the application declares, puts those that are
 * new, changed or deleted into effect, gives back permits that nobody uses, and starts the {@link LimitGate} when there is a
 * limit. Where there is none that is one small query from time to time.
 */
public final class LimitKeeper extends PeriodicService {

    private static final Logger log = LoggerFactory.getLogger(LimitKeeper.class);

    /** Between two looks: those who change a limit may not be heard. */
    private static final Duration INTERVAL = Duration.ofSeconds(5);

    /** The same where nobody listens. */
    private static final Duration DEAF_INTERVAL = Duration.ofSeconds(1);

    /** Where there are no limits, there are so many times fewer looks. */
    private static final int IDLE_FACTOR = 3;

    /** Between two looks while there are no limits, and somebody else looks whether that changes. */
    private static final Duration LONG_INTERVAL = Duration.ofMinutes(1);

    /** The same where the table cannot be used: it may be installed any time. */
    private static final Duration UNUSABLE_INTERVAL = Duration.ofMinutes(1);

    /** Between two looks at the permits, by the first worker. */
    private static final Duration CHECK_INTERVAL = Duration.ofSeconds(1);

    /** How long jobs wait at the start for it to be known what limits there are. */
    private static final Duration LONGEST_WAIT = Duration.ofSeconds(2);

    private static final int MOST_RANKS = 10;

    /** How long to wait for others that are in the way of a limit. */
    private static final Duration HELD_UP = Duration.ofMillis(50);

    /** The same once that has taken long: each try makes those wait for a moment who write jobs. */
    private static final Duration STILL_HELD_UP = Duration.ofMillis(500);

    private static final Duration STILL = Duration.ofSeconds(2);

    /** The same if only transactions are in the way that are not waited for. */
    private static final Duration LATER = Duration.ofSeconds(1);

    /** The same if somebody else does it, or if there is nothing to do. */
    private static final Duration NOTHING = Duration.ofMillis(100);

    /** However much is announced, there is one look in that time. */
    private static final long SHORTEST_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    /** After so many seconds of waiting for others it is worth a word. */
    private static final Duration LONG_HELD_UP = Duration.ofSeconds(30);

    private static final String LOCKED =
            "the table pgworker_limits cannot be read or written, so jobs with a declared limit may not start."
                    + " Some session may have locked it; pg_locks tells which";

    private final WorkerContext context;
    private final LimitStore store;
    private final DeclaredLimits declared;
    private final LimitGate gate;
    private final Set<String> served;
    private final HeldBack held;
    private final Supplier<Hearing> hearing;
    private final AtomicBoolean announced = new AtomicBoolean();
    private final long createdAt = System.nanoTime();

    /** In the way of reading limits, which has been given time already. */
    private final Obstacle unreadable = new Obstacle(Duration.ZERO);

    /** In the way of limits that are to take effect. */
    private final Obstacle heldUp = new Obstacle(LONG_HELD_UP);

    private volatile boolean known;

    // Owned by the work.
    private long lookedAt = System.nanoTime() - SHORTEST_NANOS;
    private long checkedAt = System.nanoTime() - CHECK_INTERVAL.toNanos();
    private boolean switchedOff;
    private boolean toldMissed;

    /** Whether jobs wait for limits that cannot be read. */
    private volatile boolean missed;

    /**
     * Creates the service of one worker.
     *
     * @param declared put into the database before anything else
     * @param gate started when there is a limit
     * @param served the tasks that the worker serves
     * @param held told which tasks must not start before their limits are in effect
     * @param hearing who calls {@link #told} when limits have changed
     */
    public LimitKeeper(
            WorkerContext context,
            LimitStore store,
            DeclaredLimits declared,
            LimitGate gate,
            Set<String> served,
            HeldBack held,
            Supplier<Hearing> hearing) {
        super("worker-limit-keeper", "keep the limits of jobs", context.outage());
        this.context = context;
        this.store = store;
        this.declared = declared;
        this.gate = gate;
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
        holdBack(declared.heldBack());
    }

    /**
     * Takes in a notification. Never waits; may be called from any thread, by anybody and as often as they like.
     *
     * @param text null where notifications may have been missed
     */
    public void told(@Nullable String text) {
        if ((text == null || text.equals("s")) && announced.compareAndSet(false, true)) {
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
            Look look = look();
            if (!look.limits().isEmpty()) {
                gate.start();
            }
            unreadable.passed();
            missed = false;
            toldMissed = false;
            becomeKnown();
            return workWith(look);
        } catch (SQLException e) {
            if (!DatabaseFailure.isAboutTheSchema(e)) {
                tellLocked(e);
                throw e;
            }
            tellUnusable(e);
            gate.know(null);
            held.rate(Set.of());
            holdBack(Set.of());
            becomeKnown();
            return missed ? INTERVAL.multipliedBy(IDLE_FACTOR) : UNUSABLE_INTERVAL;
        }
    }

    private boolean anyWaits() throws SQLException {
        try {
            return store.anyWaits(served);
        } catch (SQLException e) {
            if (!DatabaseFailure.isAboutTheSchema(e)) {
                throw e;
            }
            return false;
        }
    }

    private void becomeKnown() {
        if (!known) {
            known = true;
            context.started().done(Started.Part.LIMITS);
            context.signal().leaseChanged();
        }
    }

    private Look look() throws SQLException {
        declared.put();
        Look look = store.look(served);
        declared.compare(look.limits());
        held.rate(look.rated());
        holdBack(look.heldBack());
        gate.know(look.limits().isEmpty() ? null : look);
        return look;
    }

    private void holdBack(Set<String> tasks) {
        Set<String> own = new TreeSet<>(tasks);
        own.retainAll(served);
        held.hold(HeldBack.Reason.LIMIT, new HeldBack.Part(false, own, Set.of()));
    }

    private Duration workWith(Look look) throws SQLException {
        Hearing heard = hearing.get();
        Duration usual = heard == Hearing.NOTHING ? DEAF_INTERVAL : INTERVAL;
        if (look.limits().isEmpty()) {
            Duration idle = heard == Hearing.LOOKOUT ? LONG_INTERVAL : usual.multipliedBy(IDLE_FACTOR);
            return isSwitchedOff(look) ? idle : HELD_UP;
        }
        switchedOff = false;
        if (look.isUnsettled()) {
            Duration pause = apply(look);
            if (look.isPending() || pause.isZero()) {
                return pause;
            }
        }
        Duration untilCheck = CHECK_INTERVAL.multipliedBy(1 + Math.min(MOST_RANKS, look.rank()));
        if (System.nanoTime() - checkedAt >= untilCheck.toNanos()) {
            checkedAt = System.nanoTime();
            long unused = store.checkPermits();
        }
        return untilCheck.compareTo(usual) < 0 ? untilCheck : usual;
    }

    /** Sees to it that the last limit leaves nothing behind. */
    private boolean isSwitchedOff(Look look) throws SQLException {
        switchedOff = switchedOff || apply(look).equals(NOTHING);
        return switchedOff;
    }

    /** Does a step towards limits that are in effect; returns how long to wait for others that are in the way. */
    private Duration apply(Look before) throws SQLException {
        List<Step> steps = store.apply();
        steps.forEach(step -> tellDone(step, before));
        if (steps.isEmpty()) {
            return NOTHING;
        }
        boolean waits = steps.stream()
                .anyMatch(step -> step.note() != null && !step.note().equals("later"));
        if (waits) {
            tellHeldUp(steps);
            return heldUp.age().compareTo(STILL) < 0 ? HELD_UP : STILL_HELD_UP;
        }
        heldUp.passed();
        return steps.stream().anyMatch(step -> step.note() == null) ? Duration.ZERO : LATER;
    }

    private void tellDone(Step step, Look before) {
        Known known = step.name() == null ? null : before.limits().get(step.name());
        if (known == null || step.name() == null) {
            return;
        }
        boolean applied = known.isApplying() && step.state().equals("active");
        boolean removed = step.done() && step.state().equals("removing");
        if (applied || removed) {
            log.info("Limit \"{}\" {}", LogText.visible(step.name()), removed ? "is removed" : "is in effect");
            context.events().publish(new WorkerEvent.LimitApplied(context.workerId(), step.name(), removed));
        }
    }

    private void tellHeldUp(List<Step> steps) {
        String why = steps.stream().map(Step::name).toList()
                + " cannot take effect while other sessions keep transactions open that"
                + " have written jobs, or lock the jobs table: pg_stat_activity and pg_locks tell which";
        if (heldUp.met("limits " + why)) {
            log.warn("Limits {}; the worker keeps trying", why);
        }
    }

    /**
     * Returns why limits do not take effect, with the remedy; null if they do. That limits cannot be read does not matter where there
     * are none, as far as this worker can see.
     */
    public @Nullable String obstacle() {
        String first = missed || declared.exist() ? unreadable.reason() : null;
        return first == null ? heldUp.reason() : first;
    }

    /**
     * Does on the calling thread what has to be done before jobs are let through; for a worker whose services do not run.
     *
     * @return whether there are limits
     */
    public boolean applyOnce() throws SQLException, InterruptedException {
        try {
            Look look = look();
            while (look.isPending()) {
                Thread.sleep(apply(look).toMillis());
                look = look();
            }
            return !look.limits().isEmpty();
        } catch (SQLException e) {
            if (!DatabaseFailure.isAboutTheSchema(e)) {
                throw e;
            }
            tellUnusable(e);
            return false;
        }
    }

    /** The statement is cancelled when its time is over: the table is small. */
    private void tellLocked(SQLException e) {
        if (DatabaseFailure.of(e) != DatabaseFailure.CANCELLED) {
            return;
        }
        // Jobs of other tasks run: what a stranger's lock holds up is no reason to keep the application out of traffic.
        context.started().done(Started.Part.LIMITS);
        if (unreadable.met("limits cannot be used: " + LOCKED)) {
            log.warn("Limits cannot be used: {}", LOCKED);
        }
    }

    private void tellUnusable(SQLException e) throws SQLException {
        missed = declared.exist() || anyWaits();
        String why = e.getMessage() + LimitGate.RIGHTS;
        boolean untold = unreadable.met("limits cannot be used: " + why);
        if (untold || (missed && !toldMissed)) {
            toldMissed = missed;
            log.atLevel(missed ? Level.ERROR : Level.INFO).log("Limits cannot be used: {}", why);
        }
    }
}
