package dev.pgworker.internal.schedule;

import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.temporal.ChronoUnit;
import java.util.Objects;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.internal.store.ScheduleRow;
import dev.pgworker.schedule.Recurrence;

/** When a schedule is due, from its start to its end. Immutable. */
final class DueTimes {

    /** Between due times there is at least that much. */
    private static final Duration CLOSEST = Duration.ofSeconds(1);

    private final Recurrence recurrence;
    private final @Nullable Instant startsAt;
    private final @Nullable Instant endsAt;

    DueTimes(Recurrence recurrence, @Nullable Instant startsAt, @Nullable Instant endsAt) {
        this.recurrence = recurrence;
        this.startsAt = startsAt;
        this.endsAt = endsAt;
    }

    /**
     * Reads the columns of a row.
     *
     * @throws IllegalArgumentException if they do not say when
     */
    static DueTimes of(ScheduleRow.Due due) {
        return new DueTimes(recurrence(due), due.startsAt(), due.endsAt());
    }

    private static Recurrence recurrence(ScheduleRow.Due due) {
        return switch (due.kind()) {
            case "crontab" -> Recurrence.crontab(given("expression", due.expression()), zone(due));
            case "cron" -> Recurrence.cron(given("expression", due.expression()), zone(due));
            case "rate" -> Recurrence.fixedRate(given("every", due.every()), given("origin", due.origin()));
            case "delay" -> Recurrence.fixedDelay(given("every", due.every()));
            default -> throw new IllegalArgumentException("kind " + due.kind() + " is not known to this version");
        };
    }

    private static <T> T given(String column, @Nullable T value) {
        if (value == null) {
            throw new IllegalArgumentException(column + " must not be null");
        }
        return value;
    }

    private static ZoneId zone(ScheduleRow.Due due) {
        String zone = due.zone() == null ? "UTC" : due.zone();
        try {
            return ZoneId.of(zone);
        } catch (DateTimeException e) {
            throw new IllegalArgumentException("zone must be a time zone that Java knows, but is " + zone, e);
        }
    }

    boolean isDelay() {
        return recurrence.kind() == Recurrence.Kind.FIXED_DELAY;
    }

    /** Returns the first due time after the given one; null for none. For a delay, the given one is when the job ended. */
    @Nullable Instant after(Instant time) {
        Instant from =
                startsAt != null && time.isBefore(startsAt) && !isDelay() ? startsAt.minus(1, ChronoUnit.MICROS) : time;
        return limited(recurrence.nextDue(from), from);
    }

    /** Returns when a delay is due for the first time; null for never. */
    @Nullable Instant first(Instant now) {
        return limited(startsAt != null && startsAt.isAfter(now) ? startsAt : now, now.minusNanos(1));
    }

    private @Nullable Instant limited(@Nullable Instant due, Instant after) {
        if (due == null || (endsAt != null && !due.isBefore(endsAt)) || !Timestamps.storable(due)) {
            return null;
        }
        if (!due.isAfter(after)) {
            throw new IllegalArgumentException("the recurrence is due at " + due + " after " + after);
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
