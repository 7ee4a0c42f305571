package dev.pgworker.limit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Repeatable;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Limits how many jobs of a handler's task run at the same time, across all workers of the schema. Used together with {@link
 * dev.pgworker.task.JobHandler} on a method. It can be repeated, with a different {@link #name()} each time: a job starts when all
 * limits allow it.
 *
 * <p>A start of the worker puts the limit into the database, as {@link JobLimits#put} would. Invalid attributes are reported on
 * startup.
 *
 * @since 0.1.0
 */
@Documented
@Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
@Repeatable(MaxRunning.Several.class)
public @interface MaxRunning {

    /** How many jobs run at the same time, 1 to 1,000,000. Required unless {@link #valueString()} is set. */
    int value() default 0;

    /** The same as text instead, which may contain placeholders, {@code ${...}}, where the application resolves them. */
    String valueString() default "";

    /**
     * The field of the payload each value of which has the limit for itself, such as {@code "tenant"} or {@code "customer.id"};
     * empty if all jobs share it. Jobs without the field share one value of their own.
     */
    String per() default "";

    /**
     * The name of the limit, at most 128 characters, unique in the schema. Handlers whose limits have the same name share one
     * limit; the other attributes must be the same. The default is the task identifier with {@code .running} and, if there is
     * one, the field: {@code "send-mail.running.tenant"}.
     */
    String name() default "";

    /**
     * Container annotation for a method with several limits.
     *
     * @since 0.1.0
     */
    @Documented
    @Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE})
    @Retention(RetentionPolicy.RUNTIME)
    @interface Several {

        /** The limits. */
        MaxRunning[] value();
    }
}
