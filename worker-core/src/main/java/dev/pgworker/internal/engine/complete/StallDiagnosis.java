package dev.pgworker.internal.engine.complete;

import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.time.Duration;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.engine.claim.ClaimLoop;
import dev.pgworker.internal.engine.claim.Claims;
import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.engine.run.Ownership;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.store.ClaimStore;

/** Finds out from time to time why no job starts although a handler is free. Owned by {@code worker-reconcile}. */
public final class StallDiagnosis {

    private static final Logger log = WorkerLog.of(StallDiagnosis.class);

    /** How often to find out. */
    private static final Duration INTERVAL = Duration.ofSeconds(15);

    /** One part of so many of the time, where it takes long. */
    private static final int SHARE = 20;

    private final Ownership ownership;
    private final LocalQueue localQueue;
    private final Claims claims;
    private final ClaimLoop claimLoop;
    private final JobCompleter completer;
    private final Questions questions;

    private long checkAt = System.nanoTime();

    /** How long the last answer took; waiting without success for a connection of the pool is no burden for the server. */
    private long answerNanos;

    private volatile @Nullable String stall;

    /**
     * Whom to ask whether jobs wait, and since when that is a fault.
     *
     * @param store asks on connections of the application's pool
     * @param besideThePool asks on a connection of its own; null if there is nowhere to have it from
     * @param stallAfter how long a due job may wait for a free handler before that counts as a fault
     */
    public record Questions(ClaimStore store, @Nullable ClaimStore besideThePool, Duration stallAfter) {}

    /** Creates the diagnosis for one worker. */
    public StallDiagnosis(
            Ownership ownership,
            LocalQueue localQueue,
            Claims claims,
            ClaimLoop claimLoop,
            JobCompleter completer,
            Questions questions) {
        this.ownership = ownership;
        this.localQueue = localQueue;
        this.claims = claims;
        this.claimLoop = claimLoop;
        this.completer = completer;
        this.questions = questions;
    }

    Duration stallAfter() {
        return questions.stallAfter();
    }

    /** Returns why a due job does not start although a handler is free; null while none is known. May be called from any thread. */
    @Nullable String stall() {
        return stall;
    }

    /** Finds out, if it is time. */
    void check() throws SQLException {
        if (localQueue.sinceStart().compareTo(stallAfter()) < 0) {
            stall = null;
        } else if (System.nanoTime() - checkAt >= 0) {
            checkAt = System.nanoTime()
                    + Math.min(INTERVAL.toNanos(), stallAfter().toNanos());
            String reason = reason(stall != null);
            checkAt = Math.max(checkAt, System.nanoTime() + SHARE * answerNanos);
            if (reason != null && stall == null) {
                log.error("Due jobs wait although handlers are free: {}", reason);
            }
            stall = reason;
        }
    }

    /**
     * Returns why a due job does not start although a handler is free; null if there is none that waits.
     *
     * @param isKnown whether that has been found before: a job that is given back and claimed again waits on
     */
    private @Nullable String reason(boolean isKnown) throws SQLException {
        Duration longEnough = isKnown ? Duration.ZERO : questions.stallAfter();
        answerNanos = 0;
        if (!ownership.mayClaim()) {
            return null;
        }
        if (localQueue.sinceStartable().compareTo(longEnough) <= 0) {
            try {
                if (!jobsWait(longEnough, questions.store())) {
                    return null;
                }
            } catch (SQLTransientConnectionException e) {
                return whyThePoolIsToBlame(e, longEnough);
            }
        }
        String obstacle = claimLoop.obstacle() == null ? completer.obstacle() : claimLoop.obstacle();
        LocalQueue.Load load = localQueue.load();
        if (obstacle != null) {
            return named(obstacle);
        }
        if (load.waiting() + load.unwritten() == 0) {
            String refusal = claims.refusal();
            return refusal == null
                    ? named(
                            "they cannot be claimed: another transaction holds their rows or a lock of their tables, or the database refuses"
                                    + " to change them")
                    : "job " + refusal;
        }
        return load.waiting() + " claimed jobs wait for the handler executor, and the outcomes of " + load.unwritten()
                + " are not written";
    }

    /** Adds which session is in the way, if one is found that has been for long. */
    private String named(String reason) {
        try {
            String holders = claims.holders(questions.store(), stallAfter());
            return holders == null ? reason : reason + ". " + holders;
        } catch (SQLException e) {
            log.debug("Who is in the way cannot be found out", e);
            return reason;
        }
    }

    /** A pool has given no connection: the application may have all of them in use, though the database can be used. */
    private @Nullable String whyThePoolIsToBlame(SQLTransientConnectionException failure, Duration longEnough)
            throws SQLException {
        ClaimStore beside = questions.besideThePool();
        if (beside == null) {
            throw failure;
        }
        return jobsWait(longEnough, beside) ? ErrorText.headline(failure) : null;
    }

    private boolean jobsWait(Duration longEnough, ClaimStore asked) throws SQLException {
        long begin = System.nanoTime();
        boolean wait = claims.jobsWait(longEnough, asked, stallAfter());
        answerNanos = System.nanoTime() - begin;
        return wait;
    }
}
