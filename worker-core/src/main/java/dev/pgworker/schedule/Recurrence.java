package dev.pgworker.schedule;

import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.Objects;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * When a schedule is due: a pattern, a fixed rate, or a fixed delay. Immutable.
 *
 * <p>Two are equal if they are of the same kind and have the same values, whatever times they stand for.
 *
 * @since 0.1.0
 */
public final class Recurrence {

    /**
     * The kinds of recurrence.
     *
     * @since 0.1.0
     */
    public enum Kind {

        /** The five fields of a crontab, as in {@code pgworker.crontab}. */
        CRONTAB,

        /** An expression of {@link org.springframework.scheduling.support.CronExpression}. */
        CRON,

        /** Always the same time after the previous due time, whatever becomes of the jobs. */
        FIXED_RATE,

        /** Always the same time after the end of the previous job, however it ended. */
        FIXED_DELAY
    }

    private static final int MAX_EXPRESSION = 1_000;
    private static final Duration SHORTEST = Duration.ofSeconds(1);
    private static final Duration LONGEST = Duration.ofDays(3_650);

    private final Kind kind;
    private final @Nullable String expression;
    private final @Nullable ZoneId zone;
    private final @Nullable Duration every;
    private final @Nullable Instant origin;
    private final DueTimes times;

    private Recurrence(
            Kind kind,
            @Nullable String expression,
            @Nullable ZoneId zone,
            @Nullable Duration every,
            @Nullable Instant origin,
            DueTimes times) {
        this.kind = kind;
        this.expression = expression;
        this.zone = zone;
        this.every = every;
        this.origin = origin;
        this.times = times;
    }

    /**
     * Returns the recurrence of a pattern as in a crontab: minute, hour, day of month, month and day of week.
     *
     * @param pattern at most 1000 characters
     * @param zone whose local time the pattern means
     * @throws IllegalArgumentException if the pattern is invalid or never due
     */
    public static Recurrence crontab(String pattern, ZoneId zone) {
        String fields = fields("pattern", pattern);
        Arguments.requireNonNull("zone", zone);
        return new Recurrence(Kind.CRONTAB, fields, zone, null, null, DueTimes.ofCrontab(fields, zone));
    }

    /**
     * Returns the recurrence of an expression with six fields, the first of which is the second, or a macro such as {@code
     * @daily}, as {@link org.springframework.scheduling.support.CronExpression} reads it. Where clocks change, it is due when
     * a crontab would be, see {@link dev.pgworker.crontab.CronItem}; Spring's own scheduling leaves out local times that do not
     * exist, and has those twice that exist twice.
     *
     * @param expression at most 1000 characters
     * @param zone whose local time the expression means
     * @throws IllegalArgumentException if the expression is invalid or never due
     */
    public static Recurrence cron(String expression, ZoneId zone) {
        String fields = fields("expression", expression);
        Arguments.requireNonNull("zone", zone);
        return new Recurrence(Kind.CRON, fields, zone, null, null, DueTimes.ofCron(fields, zone));
    }

    /** Returns the fields with one space between, as they are stored. */
    private static String fields(String name, @Nullable String text) {
        return Arguments.requireGivenText(name, text, MAX_EXPRESSION).strip().replaceAll("\\s+", " ");
    }

    /**
     * Returns a recurrence that is due at the origin and every period before and after it.
     *
     * @param every the period, 1 second to 3650 days, of which microseconds count
     * @param origin any of the due times, of which microseconds count
     * @throws IllegalArgumentException if an argument is out of range
     */
    public static Recurrence fixedRate(Duration every, Instant origin) {
        Duration period = Arguments.requireSpan("every", every, SHORTEST, LONGEST);
        Instant one = Arguments.requireNonNull("origin", Arguments.requireStored("origin", origin));
        return new Recurrence(Kind.FIXED_RATE, null, null, period, one, DueTimes.ofRate(period, one));
    }

    /**
     * Returns a recurrence that is due once at once, and then always that long after the end of the previous job.
     *
     * @param delay 1 second to 3650 days, of which microseconds count
     * @throws IllegalArgumentException if the delay is out of range
     */
    public static Recurrence fixedDelay(Duration delay) {
        Duration pause = Arguments.requireSpan("delay", delay, SHORTEST, LONGEST);
        return new Recurrence(Kind.FIXED_DELAY, null, null, pause, null, after -> after.plus(pause));
    }

    /** Returns the kind. */
    public Kind kind() {
        return kind;
    }

    /** Returns the pattern or expression, with one space between fields; null for a fixed rate or delay. */
    public @Nullable String expression() {
        return expression;
    }

    /** Returns the zone of the pattern or expression; null for a fixed rate or delay. */
    public @Nullable ZoneId zone() {
        return zone;
    }

    /** Returns the period of a fixed rate or the delay of a fixed delay; null for a pattern or expression. */
    public @Nullable Duration every() {
        return every;
    }

    /** Returns the origin of a fixed rate; null for others. */
    public @Nullable Instant origin() {
        return origin;
    }

    /**
     * Returns the first due time after the given instant, or null if there is none for years. For a fixed delay, that is
     * the delay after the given instant, at which the previous job has ended.
     *
     * @throws IllegalArgumentException if PostgreSQL cannot store the instant
     */
    public @Nullable Instant nextDue(Instant after) {
        Arguments.requireInstant("after", Arguments.requireNonNull("after", after));
        Instant next = times.next(after);
        return next == null || Arguments.isStorable(next) ? next : null;
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof Recurrence that
                && kind == that.kind
                && Objects.equals(expression, that.expression)
                && Objects.equals(zone, that.zone)
                && Objects.equals(every, that.every)
                && Objects.equals(origin, that.origin);
    }

    @Override
    public int hashCode() {
        return Objects.hash(kind, expression, zone, every, origin);
    }

    @Override
    public String toString() {
        return switch (kind) {
            case CRONTAB -> "crontab \"" + expression + "\" in " + zone;
            case CRON -> "cron \"" + expression + "\" in " + zone;
            case FIXED_RATE -> "every " + every + " from " + origin;
            case FIXED_DELAY -> every + " after the end of the previous job";
        };
    }
}
