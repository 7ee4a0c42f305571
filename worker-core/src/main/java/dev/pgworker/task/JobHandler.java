package dev.pgworker.task;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Makes a method of a bean the handler of a task: it is called once for each attempt of a job with that identifier.
 *
 * <p>The method returns nothing. Its parameters, in any order and each at most once, are the payload (any type Jackson
 * can read, generic types included), {@link JobContext}, {@link dev.pgworker.job.Job} and
 * {@link tools.jackson.databind.JsonNode} (the payload as it stands). Returning completes the job; an exception fails
 * the attempt, and the job is retried. The method runs on a handler thread; it has a transaction only if it asks for
 * one, for instance with {@code @Transactional}.
 */
@Documented
@Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
public @interface JobHandler {

    /** The task identifier, 1 to 128 characters, unique among the handlers of an application. */
    String value();
}
