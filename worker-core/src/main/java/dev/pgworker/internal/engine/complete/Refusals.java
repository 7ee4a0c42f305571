package dev.pgworker.internal.engine.complete;

import java.sql.SQLException;
import java.time.Duration;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.store.OutcomeStore;

/**
 * Judges whether an outcome that the database refuses is to blame for that itself: if others are written meanwhile, or
 * if the database confirms that when it is asked, after a while in which none is written. Owned by {@code
 * worker-complete}.
 */
final class Refusals {

    private static final Logger log = WorkerLog.of(Refusals.class);

    /** How often an outcome is written before it is put away where something else may be to blame, a right for example. */
    private static final int SCHEMA_TRIES = 6;

    /** While no outcome is written, one is given up at most once in each of so many parts of the patience. */
    private static final int SHARE = 30;

    /** So many are given up at once after a pause, at most. */
    private static final int MOST_AT_ONCE = 4;

    private final OutcomeStore store;
    private final Duration patience;

    /** When outcomes were last written, by {@link System#nanoTime}. */
    private long writtenAt = System.nanoTime();

    /** Since when outcomes are refused and none is written, by {@link System#nanoTime}; null if not. */
    private @Nullable Long refusedSince;

    /** From when the pace of giving outcomes up counts, by {@link System#nanoTime}. */
    private long givenUpAt = System.nanoTime();

    /** Whether the database has just confirmed that the last outcome that was judged is to blame. */
    private boolean proven;

    Refusals(OutcomeStore store, Duration patience) {
        this.store = store;
        this.patience = patience;
    }

    /** Takes note that outcomes have been written. */
    void written() {
        writtenAt = System.nanoTime();
        refusedSince = null;
    }

    /**
     * Throws the failure unless a server that works has answered with it, which may concern one row, whatever it
     * reports.
     */
    void requireAnswer(Throwable e) throws SQLException {
        if (DatabaseFailure.of(e) == DatabaseFailure.OUTAGE && !DatabaseFailure.isAnswer(e)) {
            refusedSince = null;
            throw asSqlException(e);
        }
        if (refusedSince == null) {
            refusedSince = System.nanoTime();
        }
    }

    static SQLException asSqlException(Throwable e) {
        return e instanceof SQLException sql ? sql : new SQLException(e);
    }

    /** Whether others have been written since this one was refused. */
    boolean othersAreWritten(Ending ending) {
        return writtenAt - ending.refusedAt > 0;
    }

    /** Returns whether a group has been refused so often that its outcomes are to be written one by one. */
    boolean isGroupToBlame(int tries, Throwable e) {
        int most = switch (DatabaseFailure.of(e)) {
            case CONFLICT, CANCELLED -> 3;
            case OUTAGE -> 5;
            case REFUSED, INTERNAL -> 1;
        };
        return tries >= most || isPatienceOver();
    }

    /** Returns whether an outcome that was refused by itself once more is to blame for that. */
    boolean isToBlame(Ending ending, Throwable e) {
        int tries = ending.failed();
        proven = false;
        if (DatabaseFailure.isDiskFull(e)) {
            return false;
        } else if (!othersAreWritten(ending)) {
            proven = prove();
            return proven || (tries >= mostTries(e) && !mayConcernAll(e));
        }
        return DatabaseFailure.of(e) == DatabaseFailure.OUTAGE ? ending.isRefusedFor(patience) : tries >= mostTries(e);
    }

    /** Returns whether an outcome that is to blame may be left to the reconciler. */
    boolean mayGiveUp(Ending ending) {
        return proven || othersAreWritten(ending);
    }

    private static int mostTries(Throwable e) {
        return switch (DatabaseFailure.of(e)) {
            case CONFLICT -> 8;
            case CANCELLED -> 5;
            case OUTAGE, REFUSED, INTERNAL -> isAboutTheSchema(e) ? SCHEMA_TRIES : 1;
        };
    }

    /** As a time limit, a lock, a missing right or a lack of resources does. */
    private static boolean mayConcernAll(Throwable e) {
        DatabaseFailure kind = DatabaseFailure.of(e);
        return kind == DatabaseFailure.CANCELLED || kind == DatabaseFailure.OUTAGE || isAboutTheSchema(e);
    }

    private static boolean isAboutTheSchema(Throwable e) {
        String state = asSqlException(e).getSQLState();
        return state != null && (state.startsWith("42") || state.startsWith("3F") || state.startsWith("28"));
    }

    /** Returns whether nothing has been written for so long that the database is to be asked why. */
    private boolean isPatienceOver() {
        return refusedSince != null && System.nanoTime() - refusedSince >= patience.toNanos();
    }

    /** Asks the database whether outcomes could be written if it were not for their rows; no answer, or too soon, is a no. */
    private boolean prove() {
        long interval = patience.dividedBy(SHARE).toNanos();
        if (!isPatienceOver() || System.nanoTime() - givenUpAt < interval) {
            return false;
        }
        try {
            store.writeNothing();
        } catch (SQLException e) {
            log.debug("Nothing can be written", e);
            return false;
        }
        // What was let pass is caught up on, as there are pauses of several seconds between the writes that fail.
        givenUpAt = Math.max(givenUpAt + interval, System.nanoTime() - MOST_AT_ONCE * interval);
        return true;
    }
}
