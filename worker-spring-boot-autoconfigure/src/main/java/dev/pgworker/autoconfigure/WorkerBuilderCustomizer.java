package dev.pgworker.autoconfigure;

import dev.pgworker.Worker;

/**
 * Customizes the auto-configured worker before it is built. Declare beans of this type; they are applied in order,
 * after properties, handlers and listeners.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface WorkerBuilderCustomizer {

    /** Customizes the builder. */
    void customize(Worker.Builder builder);
}
