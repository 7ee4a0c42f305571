package dev.pgworker.task;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

import org.springframework.core.annotation.AliasFor;

/**
 * Declares a method of a bean as a durable listener of application events. Publishing an event adds one job for each
 * such listener that accepts it, and the method is the handler of these jobs. So each listener runs, fails and is retried by itself, on any
 * instance of the application.
 *
 * <p>The jobs are added by the thread that publishes the event, those of each worker in one transaction, before {@code publishEvent} returns. If
 * there is a Spring transaction on the worker's {@code DataSource}, that is the one: a rollback leaves no job. Otherwise the jobs are committed
 * on return. If they cannot be added, {@code publishEvent} throws what {@link dev.pgworker.job.JobScheduler} throws.
 *
 * <p>One parameter is the event, and its type selects the events, generic types included. The event is stored as JSON and read
 * again for each attempt. It is any object but an {@code org.springframework.context.ApplicationEvent}. All other rules of {@link JobHandler} apply. A bean receives events from the time on at which all
 * singletons exist, as with {@code @EventListener}.
 *
 * @since 0.1.0
 */
@Documented
@Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
@JobHandler("")
public @interface DurableEventListener {

    /**
     * The identifier of the listener, which is the task identifier of its jobs: 1 to 128 characters, unique among the handlers of
     * a worker. Jobs keep it, so the method may be renamed and moved, and the identifier may not be changed while jobs are left.
     */
    @AliasFor(annotation = JobHandler.class, attribute = "value")
    String value();

    /**
     * A SpEL expression that decides whether the listener accepts an event. An example is {@code "#event.total > 100"}. The event is
     * {@code #event}, the name of the parameter and the root object; beans are {@code @name}. Empty to accept all.
     */
    String condition() default "";

    /**
     * The named queue of the jobs, with SpEL expressions in {@code #{}}. An example is {@code "customer-#{customerId}"}. Empty
     * for none.
     */
    String queue() default "";

    /**
     * The job key, with SpEL expressions in {@code #{}}. An example is {@code "stock-#{product}"}: a later event replaces a
     * job with the same key that has not started. The key is that of all jobs of the schema, so begin it with the name of the listener. Empty for none.
     */
    String key() default "";

    /** The priority of the jobs, -32768 to 32767; numerically smaller ones run first. 0 for the default of the task. */
    int priority() default 0;

    /** See {@link JobHandler#worker()}. */
    @AliasFor(annotation = JobHandler.class)
    String worker() default "";

    /** See {@link JobHandler#maxAttempts()}. */
    @AliasFor(annotation = JobHandler.class)
    int maxAttempts() default 0;

    /** See {@link JobHandler#timeout()}. */
    @AliasFor(annotation = JobHandler.class)
    String timeout() default "";

    /** See {@link JobHandler#retryDelay()}. */
    @AliasFor(annotation = JobHandler.class)
    Class<? extends RetryDelay> retryDelay() default RetryDelay.class;

    /** See {@link JobHandler#noRetryFor()}. */
    @AliasFor(annotation = JobHandler.class)
    Class<? extends Throwable>[] noRetryFor() default {};

    /** See {@link JobHandler#retryFor()}. */
    @AliasFor(annotation = JobHandler.class)
    Class<? extends Throwable>[] retryFor() default {};

    /** See {@link JobHandler#transactional()}. */
    @AliasFor(annotation = JobHandler.class)
    boolean transactional() default false;

    /** See {@link JobHandler#direct()}. */
    @AliasFor(annotation = JobHandler.class)
    boolean direct() default false;
}
