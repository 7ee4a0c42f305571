package dev.pgworker.internal.schedule;

import java.sql.SQLException;
import java.util.List;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.internal.client.JdbcJobSchedules;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.schedule.Schedule;

/** Puts the schedules that an application declares into the database when its worker starts. Used by one thread. */
public final class DeclaredSchedules {

    private static final Logger log = LoggerFactory.getLogger(DeclaredSchedules.class);

    private final JdbcJobSchedules schedules;
    private final List<Schedule> declared;
    private boolean done;

    /** Creates the schedules of one worker. */
    public DeclaredSchedules(JdbcJobSchedules schedules, List<Schedule> declared) {
        this.schedules = schedules;
        this.declared = declared;
    }

    /** Returns whether there are any. */
    boolean exist() {
        return !declared.isEmpty();
    }

    /** Puts them, unless that has been done. One that the database refuses is left out. */
    void put() throws SQLException {
        if (done) {
            return;
        }
        for (Schedule schedule : declared) {
            try {
                schedules.declare(List.of(schedule));
            } catch (RuntimeException e) {
                SQLException cause = cause(e);
                if (cause != null && (DatabaseFailure.of(e) != DatabaseFailure.REFUSED || isAboutTheSchema(cause))) {
                    throw cause;
                }
                log.error("Schedule {} that the application declares could not be put into the database", schedule, e);
            }
        }
        done = true;
    }

    private static @Nullable SQLException cause(Throwable failure) {
        for (Throwable current = failure; current != null; current = current.getCause()) {
            if (current instanceof SQLException e) {
                return e;
            }
        }
        return null;
    }

    /** Returns whether the schema, or a right on it, is missing rather than that there is something wrong with a schedule. */
    static boolean isAboutTheSchema(SQLException e) {
        String state = e.getSQLState();
        return state != null && (state.startsWith("42") || state.startsWith("3F"));
    }
}
