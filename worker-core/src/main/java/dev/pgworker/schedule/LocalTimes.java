package dev.pgworker.schedule;

import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;

import org.jspecify.annotations.Nullable;
import org.springframework.scheduling.support.CronExpression;

/**
 * The times at which the local time of a zone matches an expression. Where clocks change, they are those that a crontab would
 * have, and not those that the expression finds by itself, which leave a day out or have two on it: a local time that does not
 * exist is the moment of the change, once however many there are, and of one that exists twice the first counts. An expression
 * that has every hour follows the elapsed time instead.
 */
final class LocalTimes {

    private final CronExpression expression;
    private final ZoneRules rules;
    private final boolean everyHour;

    LocalTimes(CronExpression expression, ZoneId zone) {
        this.expression = expression;
        this.rules = zone.getRules();
        this.everyHour = hasEveryHour(expression);
    }

    /** Decides by a day on which it is due at all: either it has all hours, or it has the same as on other days. */
    private static boolean hasEveryHour(CronExpression expression) {
        LocalDateTime some = expression.next(LocalDateTime.of(2024, 1, 1, 0, 0));
        if (some == null) {
            return false;
        }
        LocalDateTime hour = some.toLocalDate().atStartOfDay();
        for (int i = 0; i < 24; i++) {
            LocalDateTime due = expression.next(hour.minusNanos(1));
            LocalDateTime next = hour.plusHours(1);
            if (due == null || !due.isBefore(next)) {
                return false;
            }
            hour = next;
        }
        return true;
    }

    /** Returns the first time after the given one; null if there is none for years. */
    @Nullable Instant next(Instant after) {
        return everyHour ? elapsed(after) : local(after);
    }

    private @Nullable Instant local(Instant after) {
        ZoneOffset offset = rules.getOffset(after);
        LocalDateTime from = LocalDateTime.ofInstant(after, offset);
        ZoneOffsetTransition change = rules.getTransition(from);
        if (change != null && change.isOverlap() && offset.equals(change.getOffsetAfter())) {
            from = justBefore(change.getDateTimeBefore());
        }
        LocalDateTime due = expression.next(from);
        if (due == null) {
            return null;
        }
        ZoneOffsetTransition met = rules.getTransition(due);
        if (met == null) {
            return due.toInstant(rules.getOffset(due));
        }
        return met.isGap() ? met.getInstant() : due.toInstant(met.getOffsetBefore());
    }

    /** Goes from one change of the clocks to the next, as long as there is nothing due before it. */
    private @Nullable Instant elapsed(Instant after) {
        ZoneOffset offset = rules.getOffset(after);
        LocalDateTime due = expression.next(LocalDateTime.ofInstant(after, offset));
        ZoneOffsetTransition change = rules.nextTransition(after);
        while (due != null && change != null && !due.toInstant(offset).isBefore(change.getInstant())) {
            LocalDateTime begin = change.getDateTimeAfter();
            if (change.isOverlap() || due.isBefore(begin)) {
                due = expression.next(justBefore(begin));
            }
            offset = change.getOffsetAfter();
            change = rules.nextTransition(change.getInstant());
        }
        return due == null ? null : due.toInstant(offset);
    }

    private static LocalDateTime justBefore(LocalDateTime time) {
        return time.minusNanos(1);
    }
}
