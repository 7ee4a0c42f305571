package dev.pgworker.crontab;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Repeatable;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

import dev.pgworker.job.JobKeyMode;
import dev.pgworker.schedule.Misfire;
import dev.pgworker.schedule.Overlap;

/**
 * Runs a handler on a schedule. Used together with {@link dev.pgworker.task.JobHandler} on a method. It can be repeated,
 * with a different {@link #id()} each time. Exactly one of {@link #value()}, {@link #cron()}, {@link #fixedRate()} and
 * {@link #fixedDelay()} sets when.
 *
 * <p>With {@link #value()}, and without {@link #overlap()}, {@link #misfire()}, {@link #jitter()}, {@link #startsAt()} and
 * {@link #endsAt()}, it declares an item of the application's crontab, which Graphile Workers on Node.js and in Rust may
 * have as well. Otherwise it declares a {@linkplain dev.pgworker.schedule.Schedule schedule}: a start of the worker puts it
 * into the database.
 *
 * <p>All attributes that are strings may contain placeholders, {@code ${...}}, where the application resolves them, as
 * Spring Boot does. Invalid attributes are reported on startup, together with all other errors in the crontab.
 *
 * @since 0.1.0
 */
@Documented
@Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
@Repeatable(CronJob.Several.class)
public @interface CronJob {

    /**
     * The pattern with the five fields of a crontab: minute, hour, day of month, month, day of week, such as {@code "30 4 *
     * * 1"}. {@code "-"} switches the annotation off.
     */
    String value() default "";

    /**
     * An expression with six fields, the first of which is the second, or a macro such as {@code "@daily"}, by the rules of
     * {@link org.springframework.scheduling.support.CronExpression}: {@code "0 0 8 ? * MON-FRI"}. {@code "-"} switches the
     * annotation off.
     */
    String cron() default "";

    /**
     * The period of executions that take place at {@link #origin()} and every period before and after it. At least one
     * second: {@code "90m"}, {@code "1h30m"} or {@code "PT90M"}, as in {@link
     * org.springframework.format.annotation.DurationFormat}; a number without a unit is in milliseconds, as in {@code
     * @Scheduled}. {@code "-"} switches the annotation off.
     */
    String fixedRate() default "";

    /**
     * How long after the end of the previous job the next one runs, at least one second, in the form of {@link
     * #fixedRate()}. The first one runs at once. {@code "-"} switches the annotation off.
     */
    String fixedDelay() default "";

    /**
     * An instant at which a {@link #fixedRate()} is due, with an offset from UTC, such as {@code
     * "2026-01-01T06:00:00+01:00"}. The default is 1970-01-01T00:00:00Z, so that a period of ten minutes is due at the full
     * hour and every ten minutes after it.
     */
    String origin() default "";

    /**
     * The name by which all workers know the item or schedule, at most 128 characters. The default is the task identifier.
     */
    String id() default "";

    /**
     * The time zone of {@link #value()} and {@link #cron()}, such as {@code "Europe/Berlin"}. The default is the worker's
     * crontab zone.
     */
    String zone() default "";

    /**
     * What happens to an execution of a schedule while the job of the previous one still waits or runs. At most one value; the
     * default is {@link Overlap#SKIP}, and {@link Overlap#QUEUE} with {@link Misfire#RUN_ALL}. Jobs of a crontab's item may overlap.
     */
    Overlap[] overlap() default {};

    /** What happens to executions that were missed. An item of a crontab catches up on them with {@link #fill()} alone. */
    Misfire misfire() default Misfire.SKIP;

    /**
     * How far back missed executions are backfilled, such as {@code "2d"} or {@code "4w3d2h1m"}. The default is not at
     * all for an item of a crontab, and for a schedule without limit if its {@link #misfire()} lets them take place; a
     * schedule with a fill needs such a misfire.
     */
    String fill() default "";

    /** Largest random delay of each job, in the form of {@link #fixedRate()}. The default is zero. */
    String jitter() default "";

    /** Before when it is not due, in the form of {@link #origin()}. */
    String startsAt() default "";

    /** End from which on it is no longer due, in the form of {@link #origin()}. */
    String endsAt() default "";

    /** The maximum number of attempts of each job, 1 to 32767; 0 for the default of 25. */
    int maxAttempts() default 0;

    /** The named queue, 1 to 128 characters; empty for none. */
    String queueName() default "";

    /** The priority, -32768 to 32767; jobs with a numerically smaller priority run first. */
    int priority() default 0;

    /** The job key, 1 to 512 characters, under which a job replaces one that is still waiting; empty for none. */
    String jobKey() default "";

    /** What happens if another job already has the key. */
    JobKeyMode jobKeyMode() default JobKeyMode.REPLACE;

    /**
     * The payload of each job, to which {@code _cron} is added: a JSON5 object such as {@code "{onboarding: false}"}.
     */
    String payload() default "";

    /** Flags by which workers may refuse to run the job. */
    String[] flags() default {};

    /**
     * Container annotation for a method with several schedules.
     *
     * @since 0.1.0
     */
    @Documented
    @Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE})
    @Retention(RetentionPolicy.RUNTIME)
    @interface Several {

        /** The schedules. */
        CronJob[] value();
    }
}
