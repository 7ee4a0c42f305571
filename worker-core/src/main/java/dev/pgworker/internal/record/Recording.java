package dev.pgworker.internal.record;

import java.sql.SQLException;
import java.time.Duration;
import java.util.Set;

import org.slf4j.Logger;

import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.failure.Failures;
import dev.pgworker.internal.failure.WorkerLog;

/**
 * Something that is recorded again and again, in a table of its own. One that cannot be written, because the right to do so is
 * missing for example, keeps neither the others nor any job. Used by one thread.
 */
abstract class Recording {

    private static final Logger log = WorkerLog.of(Recording.class);

    /** A right that is not there, a table, or a function. */
    private static final Set<String> UNFIT = Set.of("42501", "42P01", "42883", "3F000");

    private static final long AFTER_REFUSAL_NANOS = Duration.ofMinutes(1).toNanos();

    private final String what;
    private final String tables;
    private final Failures failures = new Failures(WorkRecord.THREAD);

    /** By {@link System#nanoTime}. */
    private long dueAt = System.nanoTime();

    private boolean unfitTold;

    /**
     * Creates a recording that is due.
     *
     * @param what what is recorded, for the log
     * @param tables where to, for the log
     */
    Recording(String what, String tables) {
        this.what = what;
        this.tables = tables;
    }

    /**
     * Writes what there is to write.
     *
     * @return in how many nanoseconds it is due again
     */
    abstract long write() throws SQLException;

    /** Writes what is left when the worker stops. */
    void finish() throws SQLException {}

    /** Returns in how many nanoseconds it is due; 0 or less if it is. */
    final long dueIn() {
        return dueAt - System.nanoTime();
    }

    /**
     * Writes, and logs once why it cannot.
     *
     * @throws SQLException if the database cannot be used
     */
    final void record() throws SQLException {
        long next = AFTER_REFUSAL_NANOS;
        try {
            next = write();
            failures.succeeded();
            if (unfitTold) {
                unfitTold = false;
                log.info("{} are recorded again", what);
            }
        } catch (SQLException | RuntimeException | Error e) {
            switch (DatabaseFailure.of(e)) {
                case OUTAGE -> {
                    next = 0;
                    throw e;
                }
                case CONFLICT -> next = 0;
                case CANCELLED, REFUSED, INTERNAL -> tell(e);
            }
        } finally {
            dueAt = System.nanoTime() + next;
        }
    }

    private void tell(Throwable failure) {
        if (!isUnfit(failure)) {
            failures.report(DatabaseFailure.of(failure), failure);
        } else if (!unfitTold) {
            unfitTold = true;
            log.warn(
                    "{} are not recorded, and jobs run all the same: {}. Install the newest schema (pgworker.schema.mode=migrate), and grant"
                            + " select, insert, update and delete on {}, and execute on all functions of the schema, to the worker's role",
                    what,
                    ErrorText.headline(failure).replaceFirst(" +(Where|Hint|Position): .*", ""),
                    tables);
        }
    }

    private static boolean isUnfit(Throwable failure) {
        return failure instanceof SQLException e && UNFIT.contains(String.valueOf(e.getSQLState()));
    }
}
