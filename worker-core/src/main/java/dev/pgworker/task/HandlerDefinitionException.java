package dev.pgworker.task;

/**
 * Thrown for a handler that cannot work as declared, when handlers are registered and before any job runs.
 *
 * @since 0.1.0
 */
public final class HandlerDefinitionException extends IllegalStateException {

    private static final long serialVersionUID = 1L;

    private final String problem;
    private final String action;

    HandlerDefinitionException(String problem, String action) {
        super(problem + ". " + action + ".");
        this.problem = problem;
        this.action = action;
    }

    /** Returns the problem, including the class and method, as a sentence without a full stop. */
    public String problem() {
        return problem;
    }

    /** Returns what to change, as a sentence without a full stop. */
    public String action() {
        return action;
    }
}
