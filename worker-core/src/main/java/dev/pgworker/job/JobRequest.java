package dev.pgworker.job;

import java.lang.reflect.Type;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * A job that is to be added.
 *
 * @param identifier the task's name, 1 to 128 characters
 * @param payload what the handler receives, or null for the empty object
 * @param payloadType the type as which to write the payload; null for its run-time type
 * @param spec when and how to run the job
 * @since 0.1.0
 */
public record JobRequest(
        String identifier,
        @Nullable Object payload,
        @Nullable Type payloadType,
        JobSpec spec) {

    /**
     * Checks the arguments.
     *
     * @throws IllegalArgumentException if the identifier is not allowed or there is no spec
     */
    public JobRequest {
        Arguments.requireIdentifier(identifier);
        Arguments.requireNonNull("spec", spec);
    }

    /** Returns a job that runs as soon as possible. */
    public static JobRequest of(String identifier, @Nullable Object payload) {
        return of(identifier, payload, JobSpec.DEFAULT);
    }

    /** Returns a job that runs as the spec says. */
    public static JobRequest of(String identifier, @Nullable Object payload, JobSpec spec) {
        return new JobRequest(identifier, payload, null, spec);
    }

    /** Returns a job that runs as soon as possible, with a payload whose type is checked by the compiler. */
    public static <P> JobRequest of(Task<P> task, P payload) {
        return of(task, payload, JobSpec.DEFAULT);
    }

    /** Returns a job that runs as the spec says, with a payload whose type is checked by the compiler. */
    public static <P> JobRequest of(Task<P> task, P payload, JobSpec spec) {
        return new JobRequest(task.identifier(), payload, task.payloadType(), spec);
    }
}
