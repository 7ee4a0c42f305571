package dev.pgworker.internal.schedule;

import java.time.Duration;
import java.time.Instant;
import java.util.Objects;

import org.jspecify.annotations.Nullable;

import dev.pgworker.schedule.Schedule;

/** The due times of a schedule, of which there may be any number: they are looked for, not listed. Immutable. */
final class Timeline {

    /** Between due times there is at least that much. */
    private static final Duration CLOSEST = Duration.ofSeconds(1);

    private final Schedule schedule;

    Timeline(Schedule schedule) {
        this.schedule = schedule;
    }

    /** Returns the first due time after the given one; null for none. For a delay, the given one is when the job ended. */
    @Nullable Instant after(Instant time) {
        Instant due = schedule.nextDue(time);
        if (due != null && !due.isAfter(time)) {
            throw new IllegalStateException(schedule.recurrence() + " is due at " + due + " after " + time);
        }
        return due;
    }

    /**
     * Returns the last due time up to now.
     *
     * @param first a due time up to now
     */
    Instant last(Instant first, Instant now) {
        Instant found = first;
        // Beyond this, nothing is due up to now.
        Instant beyond = now;
        while (Duration.between(found, beyond).compareTo(CLOSEST) > 0) {
            Instant middle = found.plus(Duration.between(found, beyond).dividedBy(2));
            Instant due = after(middle);
            if (due == null || due.isAfter(now)) {
                beyond = middle;
            } else {
                found = due;
            }
        }
        while (isUpTo(after(found), now)) {
            found = Objects.requireNonNull(after(found));
        }
        return found;
    }

    /** Counts due times from one up to before another one, up to a number. */
    int count(Instant from, Instant before, int most) {
        int count = 0;
        for (Instant due = from; due != null && due.isBefore(before) && count < most; due = after(due)) {
            count++;
        }
        return count;
    }

    static boolean isUpTo(@Nullable Instant due, Instant now) {
        return due != null && !due.isAfter(now);
    }
}
