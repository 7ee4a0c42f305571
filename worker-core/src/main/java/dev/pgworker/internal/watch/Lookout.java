package dev.pgworker.internal.watch;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;

import org.slf4j.Logger;

import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.jdbc.NetworkTimeout;
import dev.pgworker.internal.lifecycle.Hearing;
import dev.pgworker.internal.store.LookoutStore;
import dev.pgworker.internal.store.LookoutStore.Subject;

/**
 * Looks for those who watch pauses, limits, schedules, cancellations and continuations whether there are any, so that
 * they need not as long as there are none: with the statement that shows that the listener connection works. So the
 * content of a lost notification is found out all the same.
 *
 * <p>Asked by the thread that listens, on whose connection it looks; the rest may be called from any thread.
 */
public final class Lookout implements NotificationListener.Check {

    private static final Logger log = WorkerLog.of(Lookout.class);

    /** Meanwhile nothing is heard on the connection. */
    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(3);

    /** How long not to look where that is refused: it may be installed or granted any time. */
    private static final long UNUSABLE_NANOS = Duration.ofMinutes(1).toNanos();

    private final LookoutStore store;
    private final BooleanSupplier listening;
    private final Map<Subject, Runnable> told;

    /** What there was nothing of when it was last looked; empty while that is not known. */
    private volatile Set<Subject> none = Set.of();

    // Owned by the thread that listens.
    private long usableAt = System.nanoTime();

    /**
     * Creates the lookout of one worker.
     *
     * @param listening whether notifications are heard, without which it does not look
     * @param told of each subject what is called when there is something, or when that is no longer looked for; must
     *     return at once
     */
    public Lookout(LookoutStore store, BooleanSupplier listening, Map<Subject, Runnable> told) {
        this.store = store;
        this.listening = listening;
        this.told = Map.copyOf(told);
    }

    /** Returns how those learn of changes who watch a subject. */
    public Hearing hearing(Subject subject) {
        if (!listening.getAsBoolean()) {
            return Hearing.NOTHING;
        }
        return none.contains(subject) ? Hearing.LOOKOUT : Hearing.NOTIFICATIONS;
    }

    @Override
    public boolean answers(Connection connection) throws SQLException {
        if (System.nanoTime() - usableAt < 0) {
            return connection.isValid((int) ANSWER_LIMIT.toSeconds());
        }
        try {
            learn(NetworkTimeout.limiting(connection, ANSWER_LIMIT, () -> store.none(connection)));
            return true;
        } catch (SQLException e) {
            learn(Set.of());
            if (!DatabaseFailure.isAnswer(e)) {
                throw e;
            }
            log.debug(
                    "Pauses, limits, schedules, cancellations and continuations are looked for by those who watch them",
                    e);
            if (DatabaseFailure.isAboutTheSchema(e)) {
                usableAt = System.nanoTime() + UNUSABLE_NANOS;
            }
            return true;
        }
    }

    private void learn(Set<Subject> found) {
        Set<Subject> ended = EnumSet.noneOf(Subject.class);
        ended.addAll(none);
        ended.removeAll(found);
        none = Set.copyOf(found);
        ended.forEach(subject -> {
            Runnable watch = told.get(subject);
            if (watch != null) {
                watch.run();
            }
        });
    }
}
