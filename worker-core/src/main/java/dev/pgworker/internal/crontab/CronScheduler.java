package dev.pgworker.internal.crontab;

import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.crontab.CronItem;
import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.PeriodicService;
import dev.pgworker.internal.store.CrontabStore;
import dev.pgworker.internal.store.CrontabStore.Known;

/**
 * Adds the jobs of a crontab on {@code worker-cron}, minute after minute.
 *
 * <p>The database's clock decides what time it is; this JVM's clock is never read, so workers whose clocks differ
 * agree. The time is asked for again after every wait: a wait that ended early is repeated, and after one that ended
 * late every minute since is executed, up to {@link #CATCH_UP}. Beyond that, the scheduler begins again as if it had
 * just been started, and only items with a fill run missed executions. A clock set back executes nothing twice: the
 * schedule continues from the current time, and the database keeps the last execution of each item.
 *
 * <p>An item is in step with the others or in the {@link Backfill}, never in both.
 */
public final class CronScheduler extends PeriodicService {

    private static final Logger log = WorkerLog.of(CronScheduler.class);

    /** For how late a minute is still executed, whatever delayed it. */
    static final Duration CATCH_UP = Duration.ofHours(1);

    /** After which the time is asked for in any case, so that a jump of the clock is noticed. */
    private static final Duration LONGEST_WAIT = Duration.ofMinutes(1);

    /** How far ahead of the database a clock by which others have executed an item may be before that is logged. */
    private static final Duration LEAD_OF_OTHER_CLOCKS = Duration.ofMinutes(2);

    /** How often to try an item that an open transaction is in the way of. */
    static final Duration HELD_RETRY = Duration.ofSeconds(3);

    /** Returns the current time of the database. */
    @FunctionalInterface
    interface DatabaseClock {
        Instant now() throws SQLException;
    }

    private final String workerId;
    private final List<CronItem> items;
    private final CrontabStore store;
    private final CronExecutor executor;
    private final MakingUp makingUp;
    private final DatabaseClock clock;
    private final WorkerEvents events;
    private final Runnable whenRegistered;

    // Owned by the thread.
    private final ClockWatch watch = new ClockWatch();
    private @Nullable Instant next;
    private @Nullable Instant awaited;
    private List<CronItem> current = List.of();
    private final Backfill backfill = new Backfill(CATCH_UP);
    private boolean late;

    /** Items that are not registered, because an open transaction is in the way. */
    private Set<String> unregistered;

    /** Since when they are to be known; null before the first try. */
    private @Nullable Instant knownSince;

    /**
     * Creates a scheduler for one worker.
     *
     * @param whenRegistered called when all items are registered
     */
    public CronScheduler(
            String workerId,
            CronPlan plan,
            CrontabStore store,
            WorkerEvents events,
            Outage outage,
            Runnable whenRegistered) {
        this(workerId, plan, store, store::now, events, outage, whenRegistered);
    }

    CronScheduler(
            String workerId,
            CronPlan plan,
            CrontabStore store,
            DatabaseClock clock,
            WorkerEvents events,
            Outage outage,
            Runnable whenRegistered) {
        super("worker-cron", "add recurring jobs", outage);
        this.workerId = workerId;
        this.items = plan.items();
        this.store = store;
        this.executor = new CronExecutor(workerId, plan, store, events);
        this.makingUp = new MakingUp(executor, this::wake, outage);
        this.clock = clock;
        this.events = events;
        this.whenRegistered = whenRegistered;
        this.unregistered = identifiers();
    }

    /** Returns what executes the items that are behind. */
    public PeriodicService makingUp() {
        return makingUp;
    }

    private Set<String> identifiers() {
        return items.stream().map(CronItem::identifier).collect(Collectors.toUnmodifiableSet());
    }

    /** Does one piece of work. */
    @Override
    protected Duration work() throws SQLException {
        try {
            Duration wait = workInTime();
            return wait.compareTo(LONGEST_WAIT) > 0 ? LONGEST_WAIT : wait;
        } catch (SQLException | RuntimeException e) {
            late = true;
            if (e instanceof SQLException refused && DatabaseFailure.isAboutTheSchema(refused)) {
                // The start is not to wait for a right, or a schema.
                whenRegistered.run();
            }
            throw e;
        }
    }

    private Duration workInTime() throws SQLException {
        Instant now = clock.now();
        if (watch.isSetBack(now)) {
            followBack(now);
        }
        settle();
        Instant tick = next;
        if (tick == null || Duration.between(tick, now).compareTo(CATCH_UP) > 0) {
            begin(tick, now);
            return Duration.ZERO;
        }
        if (!tick.isAfter(now)) {
            execute(tick, now);
            return Duration.ZERO;
        }
        if (makingUp.isIdle() && backfill.isWaiting(tick)) {
            makingUp.begin(backfill.take(tick));
        }
        late = false;
        Instant since = knownSince;
        if (!unregistered.isEmpty() && since != null) {
            Map<String, Known> unused = store.register(unregistered, since);
            leaveRegistered();
        }
        Duration wait = untilTick(tick, Duration.between(now, tick));
        if (!backfill.hasHeld() && unregistered.isEmpty()) {
            return wait;
        }
        backfill.releaseHeld();
        awaited = null;
        return wait.compareTo(HELD_RETRY) > 0 ? HELD_RETRY : wait;
    }

    /** Continues from the current time: what has been executed is recorded with each item, and not executed again. */
    private void followBack(Instant now) {
        Instant first = Backfill.ceil(now);
        if (next != null && next.isAfter(first)) {
            next = first;
        }
        backfill.release();
        awaited = null;
    }

    private Duration untilTick(Instant tick, Duration wait) {
        if (tick.equals(awaited)) {
            events.publish(new WorkerEvent.CronWokeEarly(workerId, tick, wait));
        }
        awaited = wait.compareTo(LONGEST_WAIT) > 0 ? null : tick;
        return wait;
    }

    private void begin(@Nullable Instant tick, Instant now) throws SQLException {
        if (tick != null) {
            log.warn(
                    "Recurring jobs were not scheduled from {} to {}: only items with a fill period are backfilled",
                    tick,
                    now);
        }
        Set<String> identifiers = identifiers();
        Map<String, Known> known = store.register(identifiers, now);
        if (knownSince == null) {
            knownSince = now;
        }
        leaveRegistered();
        warnOfFuture(known, now);
        next = Backfill.ceil(now);
        late = false;
        events.publish(new WorkerEvent.CronStarted(workerId, identifiers));
        divide(known, next);
    }

    /** One that has been registered stays so, or was forgotten on purpose. */
    private void leaveRegistered() throws SQLException {
        if (unregistered.isEmpty()) {
            return;
        }
        Set<String> registered = store.known(unregistered).keySet();
        unregistered = unregistered.stream()
                .filter(identifier -> !registered.contains(identifier))
                .collect(Collectors.toUnmodifiableSet());
        if (unregistered.isEmpty()) {
            whenRegistered.run();
        }
    }

    /** Puts the items that missed something into the backfill, and the others in step. */
    private void divide(Map<String, Known> known, Instant start) {
        backfill.clear();
        List<CronItem> inStep = new ArrayList<>();
        for (CronItem item : items) {
            Instant missed = Backfill.firstMissed(item, known.get(item.identifier()), start);
            if (missed == null) {
                inStep.add(item);
            } else {
                backfill.add(item, missed);
                events.publish(new WorkerEvent.CronItemBehind(workerId, item.identifier(), missed));
            }
        }
        current = inStep;
    }

    private static void warnOfFuture(Map<String, Known> known, Instant now) {
        known.forEach((identifier, entry) -> {
            Instant last = entry.lastExecution();
            if (last != null && last.isAfter(now.plus(LEAD_OF_OTHER_CLOCKS))) {
                log.warn(
                        "Cron item {} has been executed for {}, which is in the future: nothing is added until then",
                        identifier,
                        last);
            }
        });
    }

    private void execute(Instant tick, Instant now) throws SQLException {
        List<CronExecutor.Due> due = current.stream()
                .filter(item -> item.isDueAt(tick))
                .map(item -> new CronExecutor.Due(item, tick))
                .toList();
        CronExecutor.Missed missed = executor.execute(due, late, CrontabStore.Adding.IN_TIME, this::isStopping);
        next = tick.plus(1, ChronoUnit.MINUTES);
        if (!missed.isEmpty()) {
            fallBehind(missed, tick);
        }
        events.publish(new WorkerEvent.CronTicked(workerId, tick, Duration.between(tick, now)));
    }

    private void fallBehind(CronExecutor.Missed missed, Instant tick) {
        List<CronItem> inStep = new ArrayList<>();
        for (CronItem item : current) {
            if (missed.contains(item.identifier())) {
                backfill.addFailed(item, tick, missed.held().contains(item.identifier()));
                events.publish(new WorkerEvent.CronItemBehind(workerId, item.identifier(), tick));
            } else {
                inStep.add(item);
            }
        }
        current = inStep;
    }

    /** Notes which missed executions have run; an item that has caught up continues with the others. */
    private void settle() {
        MakingUp.Done done = makingUp.takeDone();
        Instant until = next;
        if (done == null || until == null) {
            return;
        }
        awaited = null;
        List<CronItem> caughtUp = backfill.settle(done.chunk(), done.missed(), until);
        if (!caughtUp.isEmpty()) {
            caughtUp.forEach(item -> events.publish(new WorkerEvent.CronItemCaughtUp(workerId, item.identifier())));
            current = items.stream()
                    .filter(item -> current.contains(item) || caughtUp.contains(item))
                    .toList();
        }
    }
}
