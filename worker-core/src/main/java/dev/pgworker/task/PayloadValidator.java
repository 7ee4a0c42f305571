package dev.pgworker.task;

/**
 * Checks payloads beyond what their types require. Each is checked before it is written, on the thread that adds the
 * job, and after it has been read, on the thread that runs it. Implementations are thread-safe.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface PayloadValidator {

    /**
     * Checks a payload.
     *
     * @param payload the object to be written, or that has been read
     * @throws IllegalArgumentException if it is invalid. The message completes "The payload is invalid: ", and names the fields at fault. The job
     *     is not added or, if it was added already, fails permanently
     */
    void validate(Object payload);
}
