package dev.pgworker.task;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

import org.springframework.aot.hint.annotation.Reflective;

/**
 * Makes a method of a bean the handler of a task: it is called once for each attempt of a job with that identifier.
 *
 * <p>The method returns nothing, or a {@link BatchResult} if its payload is a list of items of which some may fail. Its parameters, in any order and each at most once, are the payload (any type Jackson
 * can read, generic types included), {@link JobContext}, {@link dev.pgworker.job.Job} and
 * {@link tools.jackson.databind.JsonNode} (the payload as it stands). Returning completes the job; an exception fails
 * the attempt, and the job is retried. The method runs on a handler thread; it has a transaction only if it asks for
 * one, for instance with {@code @Transactional}.
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
     * worker.instances.reports}. Empty for each worker that lists the task in its property {@code tasks}; if none does, for
     * the default worker.
     */
    String worker() default "";

    /**
     * The attempt at which a failing job fails permanently even if the job itself allows more; 0 to leave that to the
     * job.
     */
    int maxAttempts() default 0;

    /**
     * How long an attempt may take, for instance {@code "30s"}, {@code "5m"} or {@code "PT1H"}. When it is over the
     * handler is interrupted and the attempt fails. Empty for any time.
     */
    String timeout() default "";

    /**
     * How long a failed job waits before its next attempt: a class of which there is a bean, or which has a constructor
     * without parameters. Without one it is the usual exponential back-off.
     */
    Class<? extends RetryPolicy> retryPolicy() default RetryPolicy.class;

    /**
     * Whether the handler runs in a transaction that also completes its job: what it does in the worker's database is
     * then done exactly once, or not at all if the transaction rolls back.
     */
    boolean transactional() default false;

    /**
     * Whether jobs are locked, run and deleted in one transaction, some hundred of them together: for short handlers that do
     * little, or only use the database, a job then costs a fraction of what it costs otherwise. The handler uses connections
     * of its own, as any other. If the process ends in the middle, or its connection breaks, the jobs are free at once and
     * those that had run may run again, all of a batch.
     *
     * <p>Jobs that have a key or a queue, or a payload of more than about two kilobytes, run as those of other tasks do. Not
     * to be combined with {@link #transactional}.
     */
    boolean direct() default false;
}
