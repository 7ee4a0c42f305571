package dev.pgworker.internal.pattern;

import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
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

    /** Tells whether the minute is due that begins at the given instant. */
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

    /** Returns the first minute after the given instant that is due, or null if there is none for years. */
    public @Nullable Instant nextDue(Instant after) {
        ZoneId local = local();
        Instant hour = after.truncatedTo(ChronoUnit.HOURS);
        Instant end = hour.plus(YEARS_TO_LOOK_AHEAD);
        while (hour.isBefore(end)) {
            LocalDate first = LocalDate.ofInstant(hour.minus(1, ChronoUnit.MINUTES), local);
            Instant next = hour.plus(1, ChronoUnit.HOURS);
            LocalDate last = LocalDate.ofInstant(next, local);
            if (first.datesUntil(last.plusDays(1)).anyMatch(pattern::matchesDate)) {
                for (Instant minute = hour; minute.isBefore(next); minute = minute.plus(1, ChronoUnit.MINUTES)) {
                    if (minute.isAfter(after) && isDueAt(minute)) {
                        return minute;
                    }
                }
            }
            hour = next;
        }
        return null;
    }

    private ZoneId local() {
        return zone == null ? ZoneOffset.UTC : zone;
    }
}
