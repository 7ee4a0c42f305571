package dev.pgworker.internal.schedule;

import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.Hearing;
import dev.pgworker.internal.lifecycle.PeriodicService;
import dev.pgworker.internal.store.ScheduleEnds;
import dev.pgworker.internal.store.ScheduleStore;
import dev.pgworker.internal.store.ScheduleStore.Look;

/**
 * Executes the schedules of the database on {@code worker-schedules}: sleeps until the first is due, or until a
 * notification that schedules have changed. All workers do the same, and for each due time one of them adds the job.
 *
 * <p>The database's clock decides what time it is, and the rows have all else, so that this worker may end at any
 * moment. A clock set back executes nothing twice: what was to be due remains so.
 */
public final class ScheduleService extends PeriodicService {

    private static final Logger log = WorkerLog.of(ScheduleService.class);

    /** Between two looks where there are schedules: those who change one may not be heard. */
    private static final Duration INTERVAL = Duration.ofSeconds(5);

    /** The same without a listener connection. */
    private static final Duration DEAF_INTERVAL = Duration.ofSeconds(1);

    /** Where there are no schedules, there are so many times fewer looks. */
    private static final int IDLE_FACTOR = 3;

    /** Between two looks while there are no schedules, and the lookout watches whether that changes. */
    private static final Duration LONG_INTERVAL = Duration.ofMinutes(1);

    /** The same where the table cannot be used: it may be installed any time. */
    private static final Duration UNUSABLE_INTERVAL = Duration.ofMinutes(1);

    /** How often to look for ends of jobs of which no notice has come. */
    private static final Duration END_INTERVAL = Duration.ofSeconds(1);

    /** How many of those that wait for an end are looked at each time. */
    private static final int MOST_AWAITING = 2_000;

    /** How long to wait for others that have locked what is due: at first, and at most. */
    private static final Duration SHORTEST_HELD = Duration.ofMillis(50);

    private static final Duration LONGEST_HELD = Duration.ofSeconds(1);

    /** For as long a schedule may be due without a word in the log. */
    private static final Duration TOLD_HELD = Duration.ofSeconds(30);

    /** However much is announced, there is one look in that time. */
    private static final long SHORTEST_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** Returns the current time, given what was read from the database. */
    @FunctionalInterface
    interface Clock {
        Instant now(Look look) throws SQLException;
    }

    /** Returns how long to wait for the next look, unless something is due before. */
    @FunctionalInterface
    interface Intervals {

        /** Returns that time, given whether anything will be due. */
        Duration next(boolean any);

        /** Returns those that keep to one interval. */
        static Intervals of(Duration interval) {
            return any -> any ? interval : interval.multipliedBy(IDLE_FACTOR);
        }
    }

    private final ScheduleStore store;
    private final ScheduleEnds ends;
    private final DeclaredSchedules declared;
    private final ScheduleExecutor executor;
    private final LateSchedules late;
    private final WorkerEvents events;
    private final Clock clock;
    private final Intervals intervals;
    private final EndedJobs ended = new EndedJobs(this::announced);
    private final AtomicBoolean announced = new AtomicBoolean();

    // Owned by the work.
    private final ClockWatch clockWatch = new ClockWatch();
    private Duration held = SHORTEST_HELD;
    private @Nullable Instant earliest;
    private Instant earliestSince = Instant.MIN;
    private boolean toldHeld;
    private boolean awaiting;
    private @Nullable Instant endsLookedForAt;
    private String endsLookedForUpTo = "";
    private long lookedAt = System.nanoTime() - SHORTEST_NANOS;
    private boolean toldUnusable;

    /**
     * Creates the service of one worker.
     *
     * @param declared put into the database before anything is executed
     * @param hearing who calls {@link #announced} when schedules have changed
     */
    public ScheduleService(
            String workerId,
            SchedulePlan plan,
            ScheduleStore store,
            DeclaredSchedules declared,
            Supplier<Hearing> hearing,
            WorkerEvents events,
            Outage outage) {
        this(
                () -> new ScheduleExecutor(store, new ScheduleRules(plan), new ScheduleReporter(workerId, events)),
                store,
                declared,
                any -> interval(hearing.get(), any),
                Look::now,
                events,
                outage);
    }

    ScheduleService(
            Supplier<ScheduleExecutor> executors,
            ScheduleStore store,
            DeclaredSchedules declared,
            Intervals intervals,
            Clock clock,
            WorkerEvents events,
            Outage outage) {
        super("worker-schedules", "execute the schedules of the database", outage);
        this.executor = executors.get();
        this.late = new LateSchedules(executors.get(), () -> clock.now(store.look()), outage);
        this.store = store;
        this.ends = store.ends();
        this.declared = declared;
        this.intervals = intervals;
        this.clock = clock;
        this.events = events;
    }

    /** Returns what executes those that are not to hold up the others. */
    public PeriodicService late() {
        return late;
    }

    private static Duration interval(Hearing hearing, boolean any) {
        return hearing == Hearing.LOOKOUT && !any
                ? LONG_INTERVAL
                : Intervals.of(hearing == Hearing.NOTHING ? DEAF_INTERVAL : INTERVAL)
                        .next(any);
    }

    /** Notes that schedules may have changed. Never waits; may be called from any thread at any time. */
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
            Duration wait = workWithTable();
            toldUnusable = false;
            return wait;
        } catch (SQLException e) {
            if (DatabaseFailure.of(e) == DatabaseFailure.CANCELLED) {
                throw held(e);
            }
            if (!DatabaseFailure.isAboutTheSchema(e)) {
                throw e;
            }
            tellUnusable(e);
            declared.giveUp();
            return UNUSABLE_INTERVAL;
        }
    }

    private Duration workWithTable() throws SQLException {
        declared.put();
        Look look = store.look();
        Instant now = clock.now(look);
        watch(now);
        watchHeld(look.due(), now);
        if (await(look.awaiting(), now) > 0) {
            return Duration.ZERO;
        }
        if (Timeline.isUpTo(look.later(), now)) {
            late.areDue();
        }
        if (Timeline.isUpTo(look.due(), now) && executor.executeDue(now, this::isStopping) > 0) {
            held = SHORTEST_HELD;
            return Duration.ZERO;
        }
        Duration wait = untilNext(look, now);
        return declared.arePut() || wait.compareTo(DeclaredSchedules.RETRY) < 0 ? wait : DeclaredSchedules.RETRY;
    }

    private Duration untilNext(Look look, Instant now) {
        Duration wait = intervals.next(look.due() != null || look.later() != null);
        if (look.awaiting()) {
            wait = END_INTERVAL;
        }
        for (Instant next : new @Nullable Instant[] {look.due(), look.later()}) {
            if (next != null && next.isAfter(now) && next.isBefore(now.plus(wait))) {
                wait = Duration.between(now, next);
            }
        }
        if (!Timeline.isUpTo(look.due(), now)) {
            held = SHORTEST_HELD;
            return wait;
        }
        // Another worker executes it, or a session changes it.
        Duration waitForOthers = held;
        Duration doubled = held.multipliedBy(2);
        held = doubled.compareTo(LONGEST_HELD) > 0 ? LONGEST_HELD : doubled;
        return wait.compareTo(waitForOthers) < 0 ? wait : waitForOthers;
    }

    /** Has delays begin whose job has ended; returns how many. */
    private int await(boolean any, Instant now) throws SQLException {
        if (any != awaiting) {
            awaiting = any;
            events.tell(any ? ended : null);
        }
        Set<Long> told = ended.take();
        if (!any) {
            return 0;
        }
        int begun = 0;
        if (!told.isEmpty()) {
            List<String> names = ends.awaiting(told);
            begun += names.isEmpty() ? 0 : ends.end(names, now);
        }
        Instant before = endsLookedForAt;
        if (before == null || now.isBefore(before) || !now.isBefore(before.plus(END_INTERVAL))) {
            endsLookedForAt = now;
            ScheduleEnds.Ended part = ends.ended(endsLookedForUpTo, MOST_AWAITING);
            endsLookedForUpTo = part.last() == null ? "" : part.last();
            begun += part.ended().isEmpty() ? 0 : ends.end(part.ended(), now);
        }
        return begun;
    }

    /** The earliest execution is that of another schedule as soon as it is executed, so one that stays the earliest is held. */
    private void watchHeld(@Nullable Instant due, Instant now) {
        Instant overdue = Timeline.isUpTo(due, now) ? due : null;
        if (overdue == null || !overdue.equals(earliest) || now.isBefore(earliestSince)) {
            earliest = overdue;
            earliestSince = now;
            toldHeld = false;
        } else if (!toldHeld && Timeline.isUpTo(earliestSince.plus(TOLD_HELD), now)) {
            toldHeld = true;
            log.warn(
                    "A schedule that was due at {} is not executed: an open transaction holds its row in pgworker_schedules."
                            + " Find the transaction in pg_stat_activity and end it; the worker retries every second",
                    due);
        }
    }

    private void watch(Instant now) {
        if (clockWatch.isSetBack(now)) {
            log.warn(
                    "The clock of the database was set back from {} to {}: schedules are executed when it has reached the times for"
                            + " which they were due next. To have one begin anew, delete it and create it again",
                    clockWatch.latest(),
                    now);
        }
    }

    /** Rows that are locked are passed over, so that only a lock on a table is waited for as long. */
    private static SQLException held(SQLException e) {
        return new SQLException(
                "Schedules are not executed meanwhile. Unless an administrator has cancelled the statement, an open"
                        + " transaction has locked the table pgworker_schedules or _private_jobs: pg_locks tells which, end it",
                e.getSQLState(),
                e);
    }

    private void tellUnusable(SQLException e) {
        if (toldUnusable) {
            log.debug("Schedules cannot be used", e);
            return;
        }
        toldUnusable = true;
        String message =
                "Schedules are not executed: {}. Migrate the schema, and grant the worker's role the rights of docs/schema.md";
        if (declared.exist()) {
            log.error(message, e.getMessage());
        } else {
            log.info(message, e.getMessage());
        }
    }
}
