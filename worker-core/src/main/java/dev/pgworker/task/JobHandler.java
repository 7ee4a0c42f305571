package dev.pgworker.task;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

import org.springframework.aot.hint.annotation.Reflective;

/**
 * Declares a method of a bean as the handler of a task. It is called once for each attempt of a job with the task's
 * identifier.
 *
 * <p>The method returns nothing, a value, which the history keeps as the result of the run if it is enabled ({@code
 * pgworker.history.enabled}), or a {@link BatchResult} if its payload is a list of items, each of which may fail separately.
 * Futures, streams and reactive types are rejected, because the work would not be done when the method returns. A suspend
 * function of Kotlin is called in {@code runBlocking} on the handler thread. Its parameters, in any order and each at most once, are the payload (of any type that Jackson can read,
 * including generic types), {@link JobContext}, {@link dev.pgworker.job.Job} and {@link
 * tools.jackson.databind.JsonNode} (the payload as stored). Returning normally completes the job; an exception fails
 * the attempt, and the job is retried. The method runs on a handler thread; it runs in a transaction only if it
 * declares one, for example with {@code @Transactional}.
 *
 * @since 0.1.0
 */
@Documented
@Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
@Reflective(JobHandlerReflectiveProcessor.class)
public @interface JobHandler {

    /** The task identifier, 1 to 128 characters, unique among the handlers of a worker. */
    String value();

    /**
     * The name of the worker that runs the jobs, in an application that has several, such as {@code "reports"} for {@code
     * pgworker.instances.reports}. Empty for each worker that lists the task in its property {@code tasks}; if none does, for
     * the default worker.
     */
    String worker() default "";

    /**
     * The attempt at which a failing job fails permanently even if the job allows more attempts; 0 to use the job's
     * maximum.
     */
    int maxAttempts() default 0;

    /**
     * The timeout of an attempt, for example {@code "30s"}, {@code "5m"} or {@code "PT1H"}. When it is exceeded, the
     * handler is interrupted and the attempt fails. Empty for no timeout.
     */
    String timeout() default "";

    /**
     * Determines how long a failed job waits before its next attempt: a class of which there is a bean, or which has a
     * no-argument constructor. The default is exponential back-off.
     */
    Class<? extends RetryDelay> retryDelay() default RetryDelay.class;

    /**
     * Exceptions after which the job fails permanently, whatever attempts it has left: these classes and their subclasses, unless
     * {@link #retryFor} has a class that is closer. An exception that neither of the two has is judged by its cause. What a handler
     * decides with a {@link JobControlException} comes first.
     */
    Class<? extends Throwable>[] noRetryFor() default {};

    /**
     * Exceptions after which the job is retried while it has attempts left. Without {@link #noRetryFor}, all others are not
     * retried; with it, these are exceptions from it, and others are retried as usual.
     */
    Class<? extends Throwable>[] retryFor() default {};

    /**
     * Whether the handler runs in a transaction that also completes its job. Its effects in the worker's database
     * then exist exactly once, or not at all if the transaction is rolled back.
     */
    boolean transactional() default false;

    /**
     * Whether jobs are locked, run and deleted many at a time, in one transaction per batch. For short handlers that do
     * little or only use the database, this reduces the cost of a job to a fraction. As with any other handler, the
     * handler's own database work uses separate connections. If the process ends or its connection breaks during a
     * batch, the jobs become available immediately, and all jobs of the batch that have already run may run again.
     *
     * <p>Jobs that have a key or a queue, or a payload of more than about two kilobytes, run like those of other tasks.
     * Cannot be combined with {@link #transactional}.
     */
    boolean direct() default false;
}
