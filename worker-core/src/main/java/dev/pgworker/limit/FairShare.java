package dev.pgworker.limit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Has jobs of a handler's task start in turn over the values of a field of the payload, however many jobs of each wait. Used
 * together with {@link dev.pgworker.task.JobHandler} on a method, alone or beside limits. What a value does not use is lent to the
 * others.
 *
 * <p>A start of the worker puts it into the database, as {@link JobLimits#put} would. Invalid attributes are reported on startup.
 *
 * @since 0.1.0
 */
@Documented
@Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
public @interface FairShare {

    /** The field of the payload whose values take turns, such as {@code "tenant"} or {@code "customer.id"}. */
    String per();

    /**
     * What values weigh that do not weigh 1, such as {@code "acme=3"}: three jobs of it start while one of another value starts.
     * Weights are 0.01 to 100. May contain placeholders.
     */
    String[] weights() default {};

    /**
     * The name, at most 128 characters, unique in the schema among all limits. Handlers with the same name take turns together;
     * the other attributes must be the same. The default is the task identifier with {@code .share} and the field: {@code
     * "send-mail.share.tenant"}.
     */
    String name() default "";
}
