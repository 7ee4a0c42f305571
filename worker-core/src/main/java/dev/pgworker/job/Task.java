package dev.pgworker.job;

import java.lang.reflect.Type;

import org.springframework.core.ParameterizedTypeReference;

import dev.pgworker.internal.argument.Arguments;

/**
 * A task identifier with the type of its payload. The compiler checks that the code that adds a job and the code
 * that runs it agree on the type. Keep it in a constant:
 *
 * <pre>{@code
 * static final Task<Greeting> HELLO = Task.of("hello", Greeting.class);
 * }</pre>
 *
 * @param identifier the task's name, 1 to 128 characters
 * @param payloadType the Java type of the payload
 * @param <P> the Java type of the payload
 * @since 0.1.0
 */
@SuppressWarnings("UnusedTypeParameter") // P ties payloads to payloadType where a task is used
public record Task<P>(String identifier, Type payloadType) {

    /** Validates the identifier. Prefer the factory methods, which tie {@code P} to {@code payloadType}. */
    public Task {
        Arguments.requireIdentifier(identifier);
        Arguments.requireNonNull("payloadType", payloadType);
    }

    /**
     * Returns the task of this name whose payload is of the given class.
     *
     * @throws IllegalArgumentException if the identifier is empty or has more than 128 characters
     */
    public static <P> Task<P> of(String identifier, Class<P> payloadType) {
        return new Task<>(identifier, payloadType);
    }

    /**
     * Returns the task of this name whose payload is of a generic type, for example
     * {@code new ParameterizedTypeReference<List<Address>>() {}}.
     *
     * @throws IllegalArgumentException if the identifier is empty or has more than 128 characters
     */
    public static <P> Task<P> of(String identifier, ParameterizedTypeReference<P> payloadType) {
        return new Task<>(
                identifier, Arguments.requireNonNull("payloadType", payloadType).getType());
    }
}
