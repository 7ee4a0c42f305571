package dev.pgworker.crontab;

import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.JobSpec;

/**
 * One recurring job.
 *
 * @param identifier by which all workers know the item; unique in a crontab
 * @param task the identifier of the task to run
 * @param pattern the minutes at which it is due
 * @param zone whose local time the pattern means; null for the crontab's own
 * @param fill how far back missed executions are made up for; zero for none
 * @param spec how each job is scheduled; its {@code runAt} is null
 * @param payload what each job's payload holds besides {@code _cron}; null for nothing
 */
public record CronItem(
        String identifier,
        String task,
        CronPattern pattern,
        @Nullable ZoneId zone,
        Duration fill,
        JobSpec spec,
        @Nullable Object payload) {

    /** Returns this item with the given zone, unless it has one of its own. */
    CronItem withDefaultZone(ZoneId other) {
        return zone == null ? new CronItem(identifier, task, pattern, other, fill, spec, payload) : this;
    }

    /**
     * Tells whether the item is due in the minute that begins at the given instant.
     *
     * <p>Where clocks change, a local time that does not exist counts as the moment of the change, once however many
     * such times the pattern has, and of a local time that exists twice only the first counts. A pattern that is open
     * in its hours follows the elapsed time instead: it is due whenever the local time matches.
     */
    boolean isDueAt(Instant tick) {
        ZoneRules rules = (zone == null ? ZoneOffset.UTC : zone).getRules();
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
}
