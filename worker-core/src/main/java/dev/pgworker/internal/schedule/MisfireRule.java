package dev.pgworker.internal.schedule;

import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.schedule.Misfire;

/**
 * Which executions take place of those that are due. All but the last are missed, and the last, too, if it is late: something
 * was in the way, an outage, or a clock that was set forward.
 */
enum MisfireRule {
    SKIP {
        @Override
        Due choose(Pending pending, int most) {
            return pending.isLastMissed() ? pending.none() : pending.only(new Execution(pending.last, false));
        }
    },
    RUN_ONCE {
        @Override
        Due choose(Pending pending, int most) {
            return pending.isLastMissed() && pending.last.isBefore(pending.oldest)
                    ? pending.none()
                    : pending.only(new Execution(pending.last, pending.isLastMissed()));
        }
    },
    RUN_ALL {
        @Override
        Due choose(Pending pending, int most) {
            Instant begin = pending.begin();
            if (begin == null) {
                return pending.none();
            }
            List<Execution> executions = new ArrayList<>();
            Instant due = begin;
            while (due != null && !due.isAfter(pending.now) && executions.size() < most) {
                executions.add(new Execution(due, due.isBefore(pending.last) || pending.isLastMissed()));
                due = pending.times.after(due);
            }
            return new Due(executions, pending.first, pending.countBefore(begin), due);
        }
    };

    /** How late an execution is that was missed. */
    static final Duration LATE = Duration.ofMinutes(1);

    /** So many executions that do not take place are counted. */
    static final int MOST_COUNTED = 100;

    static MisfireRule of(Misfire misfire) {
        return switch (misfire) {
            case SKIP -> SKIP;
            case RUN_ONCE -> RUN_ONCE;
            case RUN_ALL -> RUN_ALL;
        };
    }

    /**
     * An execution that takes place.
     *
     * @param missed whether it was missed and runs now
     */
    record Execution(Instant dueAt, boolean missed) {}

    /**
     * What is due.
     *
     * @param executions those that take place, in order
     * @param skippedFrom when the first was due of those that do not take place, if any
     * @param skipped how many do not take place before the others
     * @param next when the schedule is due next, which is not in the future if more missed executions are to run; null
     *     for never
     */
    record Due(
            List<Execution> executions,
            Instant skippedFrom,
            int skipped,
            @Nullable Instant next) {}

    /**
     * Chooses among what is due.
     *
     * @param first since when the schedule is due
     * @param backfill how far back to run missed executions; null for without limit
     * @param most the most executions to return
     */
    Due choose(Timeline times, Instant first, Instant now, @Nullable Duration backfill, int most) {
        return choose(new Pending(times, first, now, backfill), most);
    }

    abstract Due choose(Pending pending, int most);

    /** The executions from the first that is due until now. */
    private static final class Pending {

        final Timeline times;
        final Instant first;
        final Instant now;
        final Instant last;
        final Instant oldest;

        Pending(Timeline times, Instant first, Instant now, @Nullable Duration backfill) {
            this.times = times;
            this.first = first;
            this.now = now;
            this.last = times.last(first, now);
            this.oldest = backfill == null ? Instant.MIN : before(now, backfill);
        }

        private static Instant before(Instant now, Duration backfill) {
            try {
                return now.minus(backfill);
            } catch (DateTimeException | ArithmeticException e) {
                return Instant.MIN;
            }
        }

        boolean isLastMissed() {
            return Duration.between(last, now).compareTo(LATE) > 0;
        }

        /** Returns the first missed one that runs, or the last if that is in time; null for none. */
        @Nullable Instant begin() {
            Instant begin = first.isBefore(oldest) ? times.after(oldest.minus(1, ChronoUnit.MICROS)) : first;
            if (begin != null && !begin.isAfter(last)) {
                return begin;
            }
            return isLastMissed() ? null : last;
        }

        int countBefore(Instant end) {
            return times.count(first, end, MOST_COUNTED);
        }

        Due none() {
            return new Due(List.of(), first, times.count(first, now.plusNanos(1), MOST_COUNTED), times.after(last));
        }

        Due only(Execution execution) {
            return new Due(List.of(execution), first, countBefore(execution.dueAt()), times.after(last));
        }
    }
}
