package dev.pgworker.crontab;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Repeatable;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

import dev.pgworker.job.JobKeyMode;

/**
 * Runs a handler on a schedule: stands beside {@link dev.pgworker.task.JobHandler} on a method and declares an item of
 * the application's crontab whose task is the handler's. May stand several times, each with an {@link #id()} of its own.
 *
 * <p>The attributes mean what the options of a crontab line mean. What is wrong with any of them is reported at the
 * start, together with all other mistakes of the crontab.
 *
 * @since 0.1.0
 */
@Documented
@Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
@Repeatable(CronJob.Several.class)
public @interface CronJob {

    /** When it runs: minute, hour, day of month, month, day of week, as in a crontab, such as {@code "30 4 * * 1"}. */
    String value();

    /** The name by which all workers know the item, at most 128 characters; the task identifier unless set. */
    String id() default "";

    /** Whose local time the pattern means, such as {@code "Europe/Berlin"}; the worker's crontab zone unless set. */
    String zone() default "";

    /** How far back missed executions are made up for, such as {@code "2d"} or {@code "4w3d2h1m"}; not unless set. */
    String fill() default "";

    /** How often each job may be attempted, 1 to 32767; 0 for the usual 25. */
    int maxAttempts() default 0;

    /** The named queue, 1 to 128 characters; none unless set. */
    String queueName() default "";

    /** The priority, -32768 to 32767, smaller first. */
    int priority() default 0;

    /** The job key, 1 to 512 characters, by which a job replaces one that still waits; none unless set. */
    String jobKey() default "";

    /** What happens if a job has the key already. */
    JobKeyMode jobKeyMode() default JobKeyMode.REPLACE;

    /** What each job's payload holds besides {@code _cron}: a JSON5 object such as {@code "{onboarding: false}"}. */
    String payload() default "";

    /** Marks by which a worker may refuse to run the job. */
    String[] flags() default {};

    /**
     * Holds the schedules of a method that has several.
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
