package dev.pgworker.schedule;

import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;

import org.jspecify.annotations.Nullable;

/**
 * When a schedule is due: a pattern, a fixed rate, or a fixed delay. Immutable.
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

        /** The five fields of a crontab, as in {@code worker.crontab}. */
        CRONTAB,

        /** An expression of {@link org.springframework.scheduling.support.CronExpression}. */
        CRON,

        /** Always the same time after the previous due time, whatever becomes of the jobs. */
        FIXED_RATE,

        /** Always the same time after the end of the previous job, whoever ended it. */
        FIXED_DELAY
    }

    private final Kind kind;
    private final @Nullable String expression;
    private final @Nullable ZoneId zone;
    private final @Nullable Duration every;
    private final @Nullable Instant origin;

    private Recurrence(
            Kind kind,
            @Nullable String expression,
            @Nullable ZoneId zone,
            @Nullable Duration every,
            @Nullable Instant origin) {
        this.kind = kind;
        this.expression = expression;
        this.zone = zone;
        this.every = every;
        this.origin = origin;
    }

    /**
     * Returns the recurrence of a pattern as in a crontab: minute, hour, day of month, month and day of week.
     *
     * @param zone whose local time the pattern means
     * @throws IllegalArgumentException if the pattern is invalid or never due
     */
    public static Recurrence crontab(String pattern, ZoneId zone) {
        return new Recurrence(Kind.CRONTAB, pattern, zone, null, null);
    }

    /**
     * Returns the recurrence of an expression with six fields, the first of which is the second, or a macro such as {@code
     * @daily}, by the rules of {@link org.springframework.scheduling.support.CronExpression}.
     *
     * @param zone whose local time the expression means
     * @throws IllegalArgumentException if the expression is invalid or never due
     */
    public static Recurrence cron(String expression, ZoneId zone) {
        return new Recurrence(Kind.CRON, expression, zone, null, null);
    }

    /**
     * Returns a recurrence that is due at the origin and every period before and after it.
     *
     * @param every the period, at least one second
     */
    public static Recurrence fixedRate(Duration every, Instant origin) {
        return new Recurrence(Kind.FIXED_RATE, null, null, every, origin);
    }

    /**
     * Returns a recurrence that is due once at once, and then always that long after the end of the previous job.
     *
     * @param delay at least one second
     */
    public static Recurrence fixedDelay(Duration delay) {
        return new Recurrence(Kind.FIXED_DELAY, null, null, delay, null);
    }

    /** Returns the kind. */
    public Kind kind() {
        return kind;
    }

    /** Returns the pattern or expression; null for a fixed rate or delay. */
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
     */
    public @Nullable Instant nextDue(Instant after) {
        if (kind == Kind.FIXED_DELAY && every != null) {
            return after.plus(every);
        }
        throw new UnsupportedOperationException("not built");
    }
}
