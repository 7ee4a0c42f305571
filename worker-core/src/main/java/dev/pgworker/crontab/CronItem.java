package dev.pgworker.crontab;

import java.lang.reflect.Type;
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

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;

/**
 * One recurring job. Immutable.
 *
 * <p>A pattern means local time in the item's zone. Where clocks change, an execution whose time does not exist happens
 * once, at the change; one whose time exists twice happens the first time only. An item that runs in every hour follows
 * the elapsed time instead.
 */
public final class CronItem {

    private static final Duration YEARS_TO_LOOK_AHEAD = Duration.ofDays(9 * 366);

    private final SourceLocation place;
    private final String identifier;
    private final String task;
    private final CronPattern pattern;
    private final @Nullable ZoneId zone;
    private final Duration fill;
    private final JobSpec spec;
    private final @Nullable Object payload;
    private final @Nullable Type payloadType;

    /**
     * Makes an item whose parts have been checked.
     *
     * @param place where it is declared, for messages
     * @param zone whose local time the pattern means; null for the crontab's own
     * @param spec how each job is scheduled; its {@code runAt} is null
     * @param payload what each job's payload holds besides {@code _cron}; null for nothing
     * @param payloadType as what the payload is written; null for its run-time type
     */
    CronItem(
            SourceLocation place,
            String identifier,
            String task,
            CronPattern pattern,
            @Nullable ZoneId zone,
            Duration fill,
            JobSpec spec,
            @Nullable Object payload,
            @Nullable Type payloadType) {
        this.place = place;
        this.identifier = identifier;
        this.task = task;
        this.pattern = pattern;
        this.zone = zone;
        this.fill = fill;
        this.spec = spec;
        this.payload = payload;
        this.payloadType = payloadType;
    }

    /** Returns a builder of an item that runs the given task with any payload that is written as a JSON object. */
    public static CronItemBuilder<Object> of(String task) {
        return new CronItemBuilder<>(Arguments.requireIdentifier(task), null);
    }

    /** Returns a builder of an item that runs the given task. */
    public static <P> CronItemBuilder<P> of(Task<P> task) {
        return new CronItemBuilder<>(task.identifier(), task.payloadType());
    }

    /** Returns the name by which all workers know the item; unique in a crontab. */
    public String identifier() {
        return identifier;
    }

    /** Returns the identifier of the task to run. */
    public String task() {
        return task;
    }

    /** Returns how far back missed executions are made up for; zero for not at all. */
    public Duration fill() {
        return fill;
    }

    /** Returns whose local time the pattern means; null for the worker's crontab zone. */
    public @Nullable ZoneId zone() {
        return zone;
    }

    SourceLocation place() {
        return place;
    }

    /** Returns when the item is due: minute, hour, day of month, month and day of week, one space between. */
    public String schedule() {
        return pattern.text();
    }

    CronPattern pattern() {
        return pattern;
    }

    public JobSpec spec() {
        return spec;
    }

    public @Nullable Object payload() {
        return payload;
    }

    public @Nullable Type payloadType() {
        return payloadType;
    }

    @Override
    public String toString() {
        return "CronItem[" + identifier + ", task " + task + "]";
    }

    /** Returns this item with the given zone, unless it has one of its own. */
    public CronItem withDefaultZone(ZoneId other) {
        return zone == null
                ? new CronItem(place, identifier, task, pattern, other, fill, spec, payload, payloadType)
                : this;
    }

    /**
     * Tells whether the item is due in the minute that begins at the given instant.
     *
     * <p>Where clocks change, a local time that does not exist counts as the moment of the change, once however many
     * such times the pattern has, and of a local time that exists twice only the first counts. A pattern that is open
     * in its hours follows the elapsed time instead: it is due whenever the local time matches.
     */
    public boolean isDueAt(Instant tick) {
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

    /**
     * Returns the first minute after the given instant in which the item is due, or null if there is none in the next
     * nine years, which have a 29 February whatever the century.
     */
    public @Nullable Instant nextDue(Instant after) {
        ZoneId local = zone == null ? ZoneOffset.UTC : zone;
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
