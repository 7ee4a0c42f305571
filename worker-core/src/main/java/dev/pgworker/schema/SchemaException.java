package dev.pgworker.schema;

import org.jspecify.annotations.Nullable;

/**
 * The schema cannot be used or installed; tells what is wrong and what to do.
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

    /** Returns what is wrong, as whole sentences. */
    public String problem() {
        return problem;
    }

    /** Returns what whoever runs the application can do about it, as whole sentences. */
    public String action() {
        return action;
    }
}
