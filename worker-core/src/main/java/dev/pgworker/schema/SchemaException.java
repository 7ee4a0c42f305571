package dev.pgworker.schema;

import org.jspecify.annotations.Nullable;

/**
 * Thrown if the schema cannot be used or installed. Describes the problem and what to do about it.
 *
 * @since 0.1.0
 */
public final class SchemaException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    private final String problem;
    private final String action;

    SchemaException(String problem, String action, @Nullable Throwable cause) {
        super(problem + " " + action, cause);
        this.problem = problem;
        this.action = action;
    }

    SchemaException(String problem, String action) {
        this(problem, action, null);
    }

    /** Returns the problem, in complete sentences. */
    public String problem() {
        return problem;
    }

    /** Returns what the operator of the application can do about it, in complete sentences. */
    public String action() {
        return action;
    }
}
