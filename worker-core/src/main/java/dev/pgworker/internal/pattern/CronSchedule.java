package dev.pgworker.internal.pattern;

import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;

import org.jspecify.annotations.Nullable;

/**
 * When an item is due: the local times of a zone that match a pattern. Of a local time that exists twice the first counts, and
 * one that does not exist is the moment of the change, except for a pattern that is open in its hours.
 *
 * @param zone whose local time the pattern means; null for the crontab's own, which is UTC as long as there is none
 */
public record CronSchedule(CronPattern pattern, @Nullable ZoneId zone) {

    private static final Duration YEARS_TO_LOOK_AHEAD = Duration.ofDays(9 * 366);

    /** Returns this schedule in the given zone, unless it has one of its own. */
    public CronSchedule withDefaultZone(ZoneId other) {
        return zone == null ? new CronSchedule(pattern, other) : this;
    }

    /** Returns whether the minute is due that begins at the given instant. */
    public boolean isDueAt(Instant tick) {
        ZoneRules rules = local().getRules();
        ZoneOffset offset = rules.getOffset(tick);
        LocalDateTime local = LocalDateTime.ofInstant(tick, offset);
        if (rules.isFixedOffset() || pattern.isOpenInHours()) {
            return pattern.matches(local);
        }
        if (pattern.matches(local)) {
            ZoneOffsetTransition overlap = rules.getTransition(local);
            return overlap == null || offset.equals(overlap.getOffsetBefore());
        }
        ZoneOffsetTransition change = rules.nextTransition(tick.minus(1, ChronoUnit.MINUTES));
        return change != null && !change.getInstant().isAfter(tick) && change.isGap() && isDueWithin(change);
    }

    private boolean isDueWithin(ZoneOffsetTransition gap) {
        LocalDateTime missing = gap.getDateTimeBefore().truncatedTo(ChronoUnit.MINUTES);
        while (missing.isBefore(gap.getDateTimeAfter())) {
            if (pattern.matches(missing)) {
                return true;
            }
            missing = missing.plusMinutes(1);
        }
        return false;
    }

    /**
     * Returns the first minute after the given instant that is due, or null if there is none for years. Between two changes
     * of the clocks local times are looked for, as there may be years of minutes.
     */
    public @Nullable Instant nextDue(Instant after) {
        ZoneRules rules = local().getRules();
        Instant minute = after.truncatedTo(ChronoUnit.MINUTES).plus(1, ChronoUnit.MINUTES);
        Instant end = minute.plus(YEARS_TO_LOOK_AHEAD);
        while (minute.isBefore(end)) {
            ZoneOffsetTransition change = rules.nextTransition(minute.minusNanos(1));
            Instant limit = change == null || change.getInstant().isAfter(end) ? end : change.getInstant();
            Instant due = nextDue(minute, limit, rules);
            if (due != null) {
                return due;
            }
            Instant changed = limit.plusNanos(59_999_999_999L).truncatedTo(ChronoUnit.MINUTES);
            if (changed.isBefore(end) && isDueAt(changed)) {
                return changed;
            }
            minute = changed.plus(1, ChronoUnit.MINUTES);
        }
        return null;
    }

    /** Returns the first due minute between two instants, from the first on, between which the clocks do not change. */
    private @Nullable Instant nextDue(Instant minute, Instant limit, ZoneRules rules) {
        ZoneOffset offset = rules.getOffset(minute);
        LocalDateTime from = LocalDateTime.ofInstant(minute, offset);
        LocalDateTime to = LocalDateTime.ofInstant(limit, offset);
        ZoneOffsetTransition before = pattern.isOpenInHours() ? null : rules.getTransition(from);
        if (before != null && before.isOverlap() && offset.equals(before.getOffsetAfter())) {
            while (from.isBefore(before.getDateTimeBefore())) {
                from = from.plusMinutes(1);
            }
        }
        LocalDateTime due = from.isBefore(to) ? pattern.next(from, to) : null;
        return due == null ? null : due.toInstant(offset);
    }

    private ZoneId local() {
        return zone == null ? ZoneOffset.UTC : zone;
    }
}
