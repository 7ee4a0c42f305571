package dev.pgworker.job;

import java.lang.reflect.Type;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * A job to be added.
 *
 * @param identifier the task's name, 1 to 128 characters
 * @param payload the payload that the handler receives; null for the empty object
 * @param payloadType the type as which the payload is serialized; null for its run-time type
 * @param spec when and how to run the job
 * @since 0.1.0
 */
public record JobRequest(
        String identifier,
        @Nullable Object payload,
        @Nullable Type payloadType,
        JobSpec spec) {

    /**
     * Validates the arguments.
     *
     * @throws IllegalArgumentException if the identifier is invalid or the spec is null
     */
    public JobRequest {
        Arguments.requireIdentifier(identifier);
        Arguments.requireNonNull("spec", spec);
    }

    /** Returns a request for a job that runs as soon as possible. */
    public static JobRequest of(String identifier, @Nullable Object payload) {
        return of(identifier, payload, JobSpec.DEFAULT);
    }

    /** Returns a request for a job with the given spec. */
    public static JobRequest of(String identifier, @Nullable Object payload, JobSpec spec) {
        return new JobRequest(identifier, payload, null, spec);
    }

    /**
     * Returns a request for a job that runs as soon as possible, with a payload whose type is checked at compile time.
     */
    public static <P> JobRequest of(Task<P> task, P payload) {
        return of(task, payload, JobSpec.DEFAULT);
    }

    /** Returns a request for a job with the given spec and a payload whose type is checked at compile time. */
    public static <P> JobRequest of(Task<P> task, P payload, JobSpec spec) {
        Arguments.requireNonNull("task", task);
        return new JobRequest(task.identifier(), payload, task.payloadType(), spec);
    }
}
