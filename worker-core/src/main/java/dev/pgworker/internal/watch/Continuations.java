package dev.pgworker.internal.watch;

import java.sql.SQLException;
import java.time.Duration;
import java.util.function.Supplier;

import org.slf4j.Logger;

import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.Obstacle;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.Hearing;
import dev.pgworker.internal.lifecycle.PeriodicService;
import dev.pgworker.internal.store.ContinueStore;
import dev.pgworker.internal.store.ContinueStore.Left;
import dev.pgworker.internal.store.ContinueStore.Tended;

/**
 * Has jobs continue, on {@code worker-continue}, for which something has come: a signal, or the end of another job. All workers do the same, for
 * the jobs of all tasks, and the database has each job continue once. Looks when it is notified, and from time to time.
 */
public final class Continuations extends PeriodicService {

    private static final Logger log = WorkerLog.of(Continuations.class);

    /** Between two looks: a notification may be lost. */
    private static final Duration INTERVAL = Duration.ofSeconds(5);

    /** The same without a listener connection. */
    private static final Duration DEAF_INTERVAL = Duration.ofSeconds(1);

    /** The same while there is nothing, and the lookout watches whether that changes, or where it cannot be used. */
    private static final Duration LONG_INTERVAL = Duration.ofMinutes(1);

    /** How long to wait for those who hold something: at first, and at most. */
    private static final Duration SHORTEST_HELD = Duration.ofMillis(10);

    private static final Duration LONGEST_HELD = Duration.ofSeconds(1);

    private static final long TEND_NANOS = Duration.ofSeconds(10).toNanos();

    /** However much is announced, there is one look in that time. */
    private static final long SHORTEST_NANOS = Duration.ofMillis(10).toNanos();

    private final ContinueStore store;
    private final Supplier<Hearing> hearing;

    /** What holds up all of it. */
    private final Obstacle obstacle = new Obstacle(Duration.ZERO);

    /** What holds up a job: the end of its attempt does for a moment. */
    private final Obstacle holder = new Obstacle(Duration.ofMinutes(1));

    // Owned by the work.
    private long lookedAt = System.nanoTime() - SHORTEST_NANOS;
    private long tendAt = System.nanoTime();
    private long tended = ContinueStore.FIRST;
    private Duration held = SHORTEST_HELD;

    /**
     * Creates the service of one worker.
     *
     * @param hearing who calls {@link #announced} when there is something
     */
    public Continuations(ContinueStore store, Supplier<Hearing> hearing, Outage outage) {
        super("worker-continue", "continue jobs that wait for signals or other jobs", outage);
        this.store = store;
        this.hearing = hearing;
    }

    /** Notes that there may be something. Never waits; may be called from any thread at any time. */
    public void announced() {
        wake();
    }

    /**
     * Does on the calling thread all that can be done; for a worker whose services do not run.
     *
     * @return whether something has continued
     */
    public boolean continueOnce() throws SQLException {
        boolean any = false;
        try {
            while (store.goOn().more()) {
                any = true;
                progress();
            }
        } catch (SQLException e) {
            if (!DatabaseFailure.isAboutTheSchema(e)) {
                throw e;
            }
            tellUnusable(e);
        }
        return any;
    }

    @Override
    protected Duration work() throws SQLException {
        long early = SHORTEST_NANOS - (System.nanoTime() - lookedAt);
        if (wasWoken() && early > 0) {
            return Duration.ofNanos(early);
        }
        lookedAt = System.nanoTime();
        try {
            Left left = store.goOn();
            obstacle.passed();
            if (left.more() || tend()) {
                return Duration.ZERO;
            }
            return left.held() ? untilFree() : untilNext();
        } catch (SQLException e) {
            if (!DatabaseFailure.isAboutTheSchema(e)) {
                throw e;
            }
            tellUnusable(e);
            return LONG_INTERVAL;
        }
    }

    /** Returns whether there is more to be deleted. */
    private boolean tend() throws SQLException {
        if (hearing.get() == Hearing.LOOKOUT || System.nanoTime() - tendAt < 0) {
            return false;
        }
        Tended done = store.tend(tended);
        tended = done.last();
        tendAt = System.nanoTime() + (done.more() ? 0 : TEND_NANOS);
        return done.more();
    }

    private Duration untilFree() {
        if (holder.met("held")) {
            log.warn(
                    "A waiting job has not continued for a minute, although its signal has come or its predecessors have ended:"
                            + " a session holds its row or a table, a trigger refuses the change, or the job still runs. See pg_locks and the view \"jobs\"");
        }
        Duration wait = held;
        Duration doubled = held.multipliedBy(2);
        held = doubled.compareTo(LONGEST_HELD) > 0 ? LONGEST_HELD : doubled;
        return wait;
    }

    private Duration untilNext() {
        holder.passed();
        held = SHORTEST_HELD;
        return switch (hearing.get()) {
            case NOTHING -> DEAF_INTERVAL;
            case NOTIFICATIONS -> INTERVAL;
            case LOOKOUT -> LONG_INTERVAL;
        };
    }

    private void tellUnusable(SQLException e) {
        if (obstacle.met("unusable")) {
            log.info(
                    "Jobs that wait for a signal or for other jobs do not continue: {}. Migrate the schema, and grant the worker's role the rights of"
                            + " docs/schema.md",
                    e.getMessage());
        }
    }
}
