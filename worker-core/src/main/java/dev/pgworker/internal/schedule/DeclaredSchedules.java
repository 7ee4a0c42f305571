package dev.pgworker.internal.schedule;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.client.ScheduleControl;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.schedule.Schedule;

/**
 * Puts the schedules that an application declares into the database when its worker starts. Those that others are
 * changing follow later, and are executed as they were meanwhile. Used by one thread.
 */
public final class DeclaredSchedules {

    private static final Logger log = WorkerLog.of(DeclaredSchedules.class);

    /** After which those are tried again that others were changing. */
    static final Duration RETRY = Duration.ofSeconds(3);

    /** How long to wait for a session that is changing one: others are to be executed in time. */
    private static final Duration LOCK_LIMIT = Duration.ofMillis(100);

    /** After so many no more are waited for: the table is locked rather than some rows. */
    private static final int MOST_HELD = 5;

    private static final String LOCK_NOT_AVAILABLE = "55P03";

    private final ScheduleControl schedules;
    private final List<Schedule> declared;
    private final Runnable whenSettled;

    /** Those that have not been put. */
    private List<Schedule> left;

    private boolean toldHeld;
    private long triedAt = System.nanoTime() - RETRY.toNanos();

    /**
     * Creates the schedules of one worker.
     *
     * @param whenSettled called when nothing is left to be done for the start; may be called again
     */
    public DeclaredSchedules(ScheduleControl schedules, List<Schedule> declared, Runnable whenSettled) {
        this.whenSettled = whenSettled;
        this.schedules = schedules;
        this.declared = declared;
        this.left = declared;
    }

    /** Returns whether there are any. */
    boolean exist() {
        return !declared.isEmpty();
    }

    /** Returns whether none is left to be put. */
    boolean arePut() {
        return left.isEmpty();
    }

    /** Has the start not wait for them, because the table cannot be used. */
    void giveUp() {
        whenSettled.run();
    }

    /** Puts them, unless that has been done. One that the database refuses is left out. */
    void put() throws SQLException {
        if (left.isEmpty() || System.nanoTime() - triedAt < RETRY.toNanos()) {
            return;
        }
        List<Schedule> held = new ArrayList<>();
        for (Schedule schedule : left) {
            if (held.size() >= MOST_HELD || !put(schedule)) {
                held.add(schedule);
            }
        }
        left = held;
        triedAt = System.nanoTime();
        if (held.isEmpty()) {
            whenSettled.run();
        }
        if (!held.isEmpty() && !toldHeld) {
            toldHeld = true;
            log.warn(
                    "Schedules that the application declares could not be put into the database, which is tried again every few"
                            + " seconds: {}. An open transaction has locked their rows or the table pgworker_schedules; end it,"
                            + " pg_locks tells who holds it",
                    held.stream().map(Schedule::name).toList());
        }
    }

    /** Returns false if another session is changing it. */
    private boolean put(Schedule schedule) throws SQLException {
        try {
            schedules.declare(schedule, LOCK_LIMIT);
        } catch (RuntimeException e) {
            SQLException cause = cause(e);
            if (cause != null && LOCK_NOT_AVAILABLE.equals(cause.getSQLState())) {
                return false;
            }
            if (cause != null
                    && (DatabaseFailure.of(e) != DatabaseFailure.REFUSED || DatabaseFailure.isAboutTheSchema(cause))) {
                throw cause;
            }
            log.error("Schedule {} that the application declares could not be put into the database", schedule, e);
        }
        return true;
    }

    private static @Nullable SQLException cause(Throwable failure) {
        for (Throwable current = failure; current != null; current = current.getCause()) {
            if (current instanceof SQLException e) {
                return e;
            }
        }
        return null;
    }
}
