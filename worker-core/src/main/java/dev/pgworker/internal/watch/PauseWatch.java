package dev.pgworker.internal.watch;

import java.sql.SQLException;
import java.time.Duration;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.argument.LogText;
import dev.pgworker.internal.engine.HeldBack;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.Obstacle;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.Hearing;
import dev.pgworker.internal.lifecycle.PeriodicService;
import dev.pgworker.internal.store.PauseStore;
import dev.pgworker.job.Pause;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.job.PauseTarget.Kind;

/**
 * Knows on {@code worker-pauses} what is paused: looks when that is announced, and from time to time. While a queue is paused it sees to it
 * that the queue stays locked, which other workers can undo.
 */
public final class PauseWatch extends PeriodicService {

    private static final Logger log = WorkerLog.of(PauseWatch.class);

    /** Between two looks while announcements are heard. */
    private static final Duration INTERVAL = Duration.ofSeconds(2);

    /** The same while nothing is paused, and the lookout watches whether that changes. */
    private static final Duration LONG_INTERVAL = Duration.ofMinutes(1);

    /** The same while they are not, or others may free what is paused. */
    private static final Duration SHORT_INTERVAL = Duration.ofMillis(800);

    /** The same where the table cannot be used: it may be installed any time. */
    private static final Duration UNUSABLE_INTERVAL = Duration.ofMinutes(1);

    /** However much is announced, there is one look in that time. */
    private static final long SHORTEST_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    private final PauseStore store;
    private final HeldBack held;
    private final Supplier<Hearing> hearing;
    private final Runnable whenKnown;
    private final WorkerContext context;
    private final AtomicBoolean announced = new AtomicBoolean();

    /** In the way of knowing what is paused; the statement has been given time already. */
    private final Obstacle obstacle = new Obstacle(Duration.ZERO);

    private volatile boolean known;
    private volatile List<Pause> current = List.of();

    // Owned by the work.
    private long lookedAt = System.nanoTime() - SHORTEST_NANOS;
    private boolean toldLoose;

    /**
     * Creates the watch of one worker.
     *
     * @param held told what is paused
     * @param hearing who calls {@link #announced} when that changes
     * @param whenKnown called when it is known for the first time
     */
    public PauseWatch(
            PauseStore store, HeldBack held, Supplier<Hearing> hearing, Runnable whenKnown, WorkerContext context) {
        super("worker-pauses", "know what is paused", context.outage());
        this.store = store;
        this.held = held;
        this.hearing = hearing;
        this.whenKnown = whenKnown;
        this.context = context;
    }

    /** Notes that something may have been paused or resumed. Never waits; may be called from any thread at any time. */
    public void announced() {
        if (announced.compareAndSet(false, true)) {
            wake();
        }
    }

    /** Returns whether it is known what is paused, so that jobs may be claimed. */
    public boolean isKnown() {
        return known;
    }

    /** Returns what is paused, as far as is known. */
    public List<Pause> current() {
        return current;
    }

    /** Does once what the service does again and again, on the calling thread; for a worker whose services do not run. */
    public void lookOnce() throws SQLException {
        Duration unused = look();
    }

    @Override
    protected Duration work() throws SQLException {
        long early = SHORTEST_NANOS - (System.nanoTime() - lookedAt);
        if (wasWoken() && early > 0) {
            return Duration.ofNanos(early);
        }
        announced.set(false);
        lookedAt = System.nanoTime();
        return look();
    }

    private Duration look() throws SQLException {
        PauseStore.State state;
        try {
            state = store.read();
        } catch (SQLException e) {
            if (!DatabaseFailure.isAboutTheSchema(e)) {
                tellLocked(e);
                throw e;
            }
            tellUnusable(e);
            isKnownNow();
            return UNUSABLE_INTERVAL;
        }
        obstacle.passed();
        learn(state.pauses());
        isKnownNow();
        if (state.loose()) {
            keep();
        }
        return state.anyQueue() ? SHORT_INTERVAL : interval(state.pauses().isEmpty());
    }

    private Duration interval(boolean nothing) {
        return switch (hearing.get()) {
            case NOTHING -> SHORT_INTERVAL;
            case NOTIFICATIONS -> INTERVAL;
            case LOOKOUT -> nothing ? LONG_INTERVAL : INTERVAL;
        };
    }

    private void isKnownNow() {
        if (!known) {
            known = true;
            whenKnown.run();
        }
    }

    private void learn(List<Pause> pauses) {
        List<Pause> before = current;
        if (pauses.equals(before)) {
            return;
        }
        current = pauses;
        Set<String> tasks = new HashSet<>();
        Set<String> queues = new HashSet<>();
        boolean everything = false;
        for (Pause pause : pauses) {
            String name = pause.target().name();
            everything |= name == null;
            if (name != null) {
                (pause.target().kind() == Kind.TASK ? tasks : queues).add(name);
            }
        }
        held.hold(HeldBack.Reason.PAUSED, new HeldBack.Part(everything, tasks, queues));
        tell(before, pauses);
    }

    private void tell(List<Pause> before, List<Pause> pauses) {
        Set<Pause> ended = new LinkedHashSet<>(before);
        Set<Pause> begun = new LinkedHashSet<>(pauses);
        ended.removeAll(begun);
        begun.removeAll(before);
        for (Pause pause : ended) {
            log.info("Resumed: {}", words(pause.target()));
            context.publish(() -> new WorkerEvent.PauseEnded(context.workerId(), pause));
        }
        for (Pause pause : begun) {
            log.info("Paused since {}: {}", pause.since(), words(pause.target()));
            context.publish(() -> new WorkerEvent.PauseBegan(context.workerId(), pause));
        }
    }

    private static String words(PauseTarget target) {
        return target.name() == null
                ? target.toString()
                : target.kind().name().toLowerCase(Locale.ROOT) + " \"" + LogText.visible(target.name()) + "\"";
    }

    /** What this worker may not lock another one does. */
    private void keep() throws SQLException {
        try {
            store.keep();
            toldLoose = false;
        } catch (SQLException e) {
            if (!DatabaseFailure.isAboutTheSchema(e)) {
                throw e;
            }
            if (!toldLoose) {
                toldLoose = true;
                log.warn(
                        "A paused queue is not locked, and this worker may not lock it: {}. Grant the worker's role the rights of"
                                + " docs/schema.md",
                        e.getMessage());
            }
        }
    }

    /** Returns why it is not known what is paused, with the remedy; null if it is. */
    public @Nullable String obstacle() {
        return obstacle.reason();
    }

    /** The statement is cancelled when its time is over: the table is small, so it is locked. */
    private void tellLocked(SQLException e) {
        String why = "the table pgworker_pauses cannot be read, so "
                + (known ? "what was paused last stays paused" : "this worker starts no jobs yet")
                + ". Some session may have locked it; pg_locks tells which";
        if (DatabaseFailure.of(e) == DatabaseFailure.CANCELLED && obstacle.met(why)) {
            log.warn("It is not known what is paused: {}", why);
        }
    }

    private void tellUnusable(SQLException e) {
        String why = "pauses are not respected: " + e.getMessage()
                + ". Migrate the schema, and grant the worker's role the rights of docs/schema.md";
        if (obstacle.met(why)) {
            log.warn("It is not known what is paused: {}", why);
        }
    }
}
