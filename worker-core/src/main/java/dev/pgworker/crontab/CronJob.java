package dev.pgworker.crontab;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Repeatable;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

import dev.pgworker.job.JobKeyMode;

/**
 * Runs a handler on a schedule. Used together with {@link dev.pgworker.task.JobHandler} on a method, it declares an
 * item of the application's crontab for the handler's task. It can be repeated, with a different {@link #id()} each
 * time.
 *
 * <p>The attributes have the same meaning as the options of a crontab line. Invalid attributes are reported on startup,
 * together with all other errors in the crontab.
 *
 * @since 0.1.0
 */
@Documented
@Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
@Repeatable(CronJob.Several.class)
public @interface CronJob {

    /** The pattern: minute, hour, day of month, month, day of week, as in a crontab, such as {@code "30 4 * * 1"}. */
    String value();

    /**
     * The identifier by which all workers know the item, at most 128 characters. The default is the task identifier.
     */
    String id() default "";

    /** The time zone of the pattern, such as {@code "Europe/Berlin"}. The default is the worker's crontab zone. */
    String zone() default "";

    /**
     * How far back missed executions are backfilled, such as {@code "2d"} or {@code "4w3d2h1m"}. By default, they are
     * not.
     */
    String fill() default "";

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
