package dev.pgworker.internal.schedule;

import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.function.BooleanSupplier;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.schedule.ScheduleRules.Decision;
import dev.pgworker.internal.store.DueSchedule;
import dev.pgworker.internal.store.ScheduleStep;
import dev.pgworker.internal.store.ScheduleStore;

/**
 * Executes schedules that are due: many in one transaction, and where that is refused one by one, so that one that cannot be
 * executed hurts only itself. Used by one thread.
 */
final class ScheduleExecutor {

    /** How many are executed in one transaction, of those that are declared and of others. */
    static final int MOST_TOGETHER = 200;

    /** How many have their turn that have failed or make up for something, before those that are in time. */
    private static final int MOST_LATER = 20;

    /** How long all together wait for jobs that have the same key. Others hold these for milliseconds, unless their transaction hangs. */
    private static final Duration LOCK_LIMIT = Duration.ofMillis(50);

    /** The same for one, while others may wait behind it. */
    private static final Duration LOCK_LIMIT_ALONE = Duration.ofMillis(10);

    /** After which one is tried again that an open transaction is in the way of. */
    static final Duration HELD_RETRY = Duration.ofSeconds(3);

    /** The same for one whose job the database refuses. */
    static final Duration REFUSED_RETRY = Duration.ofMinutes(1);

    private static final int MOST_CONFLICTS = 5;

    private final ScheduleStore store;
    private final ScheduleRules rules;
    private final ScheduleReporter reporter;

    ScheduleExecutor(ScheduleStore store, ScheduleRules rules, ScheduleReporter reporter) {
        this.store = store;
        this.rules = rules;
        this.reporter = reporter;
    }

    /**
     * Executes some that are due; returns how many there were, 0 if there are no more, or others have them.
     *
     * @param stopping whether the thread is interrupted because it is to end
     */
    int executeDue(Instant now, BooleanSupplier stopping) throws SQLException {
        List<Decision> decisions = new ArrayList<>();
        try {
            List<ScheduleStore.Done> done =
                    store.executeDue(now, MOST_TOGETHER, LOCK_LIMIT, due -> decide(due, now, stopping, decisions));
            // On a connection that has broken meanwhile others have been decided before.
            int first = decisions.size() - done.size();
            for (int i = 0; i < done.size(); i++) {
                reporter.report(decisions.get(first + i), done.get(i).jobIds());
            }
            return done.size();
        } catch (SQLException e) {
            if (decisions.isEmpty() || DatabaseFailure.of(e) == DatabaseFailure.OUTAGE) {
                throw e;
            }
            for (Decision decision : decisions) {
                executeOne(decision.step().due().name(), now, stopping);
            }
            return decisions.size();
        }
    }

    /** The same for those that have failed before or make up for something, one after the other. */
    int executeLater(Instant now, BooleanSupplier stopping) throws SQLException {
        List<String> names = store.later(now, MOST_LATER);
        for (String name : names) {
            executeOne(name, now, stopping);
        }
        return names.size();
    }

    private ScheduleStep decide(DueSchedule due, Instant now, BooleanSupplier stopping, List<Decision> into) {
        Decision decision = rules.decide(due, now);
        if (!decision.failed().isEmpty() && stopping.getAsBoolean()) {
            // It was the stop that an interceptor failed of: nothing is written, and another worker executes all of
            // these.
            throw new CancellationException("The worker stops");
        }
        into.add(decision);
        return decision.step();
    }

    private void executeOne(String name, Instant now, BooleanSupplier stopping) throws SQLException {
        for (int attempt = 1; ; attempt++) {
            List<Decision> decisions = new ArrayList<>();
            try {
                store.executeOne(name, now, LOCK_LIMIT_ALONE, due -> decide(due, now, stopping, decisions))
                        .ifPresent(done -> reporter.report(decisions.get(decisions.size() - 1), done.jobIds()));
                return;
            } catch (SQLException e) {
                DatabaseFailure kind = DatabaseFailure.of(e);
                if (kind == DatabaseFailure.OUTAGE) {
                    throw e;
                }
                if (kind != DatabaseFailure.CONFLICT || attempt == MOST_CONFLICTS) {
                    putOff(name, now, decisions.isEmpty() ? null : decisions.get(0), e);
                    return;
                }
            }
        }
    }

    private void putOff(String name, Instant now, @Nullable Decision decision, SQLException e) throws SQLException {
        boolean held = "55P03".equals(e.getSQLState());
        String problem = reporter.reportPutOff(name, decision, held, e);
        store.putOff(name, now, now.plus(held ? HELD_RETRY : REFUSED_RETRY), problem);
    }
}
