package dev.pgworker.job;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * What {@link WorkerOperations#pause} pauses. Neither the task nor the queue has to exist yet.
 *
 * @param kind whether it is a task, a queue or everything
 * @param name the name of the task or queue, 1 to 128 characters; null for everything
 * @since 0.1.0
 */
public record PauseTarget(Kind kind, @Nullable String name) {

    private static final int MAX_NAME = 128;

    private static final PauseTarget EVERYTHING = new PauseTarget(Kind.EVERYTHING, null);

    /**
     * What can be paused.
     *
     * @since 0.1.0
     */
    public enum Kind {

        /** The jobs of a task, in all PgWorkers of the schema; Graphile Workers on Node.js and in Rust continue. */
        TASK,

        /** The jobs of a named queue, for all workers: PgWorkers, and Graphile Workers on Node.js and in Rust. */
        QUEUE,

        /** All jobs, in all PgWorkers of the schema; Graphile Workers on Node.js and in Rust continue. */
        EVERYTHING
    }

    /**
     * Checks the name.
     *
     * @throws IllegalArgumentException if PostgreSQL cannot store it, if it is missing, or if there is one for everything
     */
    public PauseTarget {
        Arguments.requireNonNull("kind", kind);
        if (kind != Kind.EVERYTHING) {
            name = Arguments.requireGivenText(kind == Kind.TASK ? "task" : "queue", name, MAX_NAME);
        } else if (name != null) {
            throw new IllegalArgumentException("name must be null if everything is meant, but is \"" + name + "\"");
        }
    }

    /** Returns a task. */
    public static PauseTarget task(String task) {
        return new PauseTarget(Kind.TASK, task);
    }

    /** Returns a named queue. */
    public static PauseTarget queue(String queue) {
        return new PauseTarget(Kind.QUEUE, queue);
    }

    /** Returns everything. */
    public static PauseTarget everything() {
        return EVERYTHING;
    }

    /** Returns what it is in words, such as {@code task "report"}. */
    @Override
    public String toString() {
        return switch (kind) {
            case TASK -> "task \"" + name + "\"";
            case QUEUE -> "queue \"" + name + "\"";
            case EVERYTHING -> "everything";
        };
    }
}
