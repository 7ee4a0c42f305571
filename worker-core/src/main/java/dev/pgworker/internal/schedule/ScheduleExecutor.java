package dev.pgworker.internal.schedule;

import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.function.BooleanSupplier;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.schedule.ScheduleRules.Decision;
import dev.pgworker.internal.store.DueSchedule;
import dev.pgworker.internal.store.ScheduleStep;
import dev.pgworker.internal.store.ScheduleStore;
import dev.pgworker.internal.store.ScheduleStore.Limits;

/**
 * Executes schedules that are due: many in one transaction, and where that is refused or slow one by one, so that one
 * that cannot be executed affects no others. Used by one thread.
 */
final class ScheduleExecutor {

    /** How many are executed in one transaction, of those that are declared and of others. */
    static final int MOST_TOGETHER = 200;

    /** How many that have their turn apart are executed, before it is looked who is the next. */
    private static final int MOST_LATER = 20;

    /** How long all together wait for jobs that have the same key. Others hold these for milliseconds, unless their transaction hangs. */
    private static final Limits TOGETHER = new Limits(Duration.ofMillis(50), Duration.ofMillis(400));

    /** The same for one, while others may wait behind it. */
    private static final Limits ALONE = new Limits(Duration.ofMillis(10), ScheduleStore.SLOW);

    /** The same for one that has its turn apart from those that are in time. */
    private static final Limits APART = new Limits(Duration.ofMillis(10), Duration.ofSeconds(20));

    /** After so many slow ones of a transaction the others are not waited for any more: they have their turn apart, too. */
    private static final int MOST_SLOW = 3;

    /** After which one is tried again that an open transaction is in the way of. */
    static final Duration HELD_RETRY = Duration.ofSeconds(3);

    /** The same for one whose job the database refuses. */
    static final Duration REFUSED_RETRY = Duration.ofMinutes(1);

    private static final int MOST_CONFLICTS = 5;

    private static final String QUERY_CANCELED = "57014";

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
                    store.executeDue(now, MOST_TOGETHER, TOGETHER, due -> decide(due, now, stopping, decisions));
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
            executeOneByOne(decisions, now, stopping);
            return decisions.size();
        }
    }

    private void executeOneByOne(List<Decision> decisions, Instant now, BooleanSupplier stopping) throws SQLException {
        int slow = 0;
        for (Decision decision : decisions) {
            String name = decision.step().due().name();
            if (slow < MOST_SLOW && executeOne(name, now, ALONE, stopping) != Result.SLOW) {
                continue;
            }
            slow++;
            store.putOff(name, now, now, null);
        }
    }

    /** Executes some of those that were put off, each in a transaction of its own, which may take longer. */
    Later executeLater(Instant now, BooleanSupplier stopping) throws SQLException {
        Later later = Later.NONE;
        for (String name : store.later(now, MOST_LATER)) {
            Result result = executeOne(name, now, APART, stopping);
            later = result == Result.NOTHING && later != Later.DONE ? Later.HELD : Later.DONE;
        }
        return later;
    }

    /** What became of those that have their turn apart: there are none, others have all of them, or some have been executed. */
    enum Later {
        NONE,
        HELD,
        DONE
    }

    private enum Result {
        /** Others have done it, or are about to. */
        NOTHING,
        /** Executed, or put off. */
        DONE,
        /** It took too long for others to wait behind it, and nothing has been written. */
        SLOW
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

    private Result executeOne(String name, Instant now, Limits limits, BooleanSupplier stopping) throws SQLException {
        for (int attempt = 1; ; attempt++) {
            List<Decision> decisions = new ArrayList<>();
            try {
                Optional<ScheduleStore.Done> done =
                        store.executeOne(name, now, limits, due -> decide(due, now, stopping, decisions));
                done.ifPresent(one -> reporter.report(decisions.get(decisions.size() - 1), one.jobIds()));
                return done.isPresent() ? Result.DONE : Result.NOTHING;
            } catch (SQLException e) {
                DatabaseFailure kind = DatabaseFailure.of(e);
                if (kind == DatabaseFailure.OUTAGE) {
                    throw e;
                }
                if (!limits.equals(APART) && QUERY_CANCELED.equals(e.getSQLState())) {
                    return Result.SLOW;
                }
                if (kind != DatabaseFailure.CONFLICT || attempt == MOST_CONFLICTS) {
                    putOff(name, now, decisions.isEmpty() ? null : decisions.get(0), e);
                    return Result.DONE;
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
