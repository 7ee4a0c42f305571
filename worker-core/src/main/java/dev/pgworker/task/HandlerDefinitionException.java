package dev.pgworker.task;

/**
 * A handler that cannot work as it is written. It is thrown while handlers are registered, before any job runs.
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

    /** Returns what is wrong, with the class and method named; a sentence without its full stop. */
    public String problem() {
        return problem;
    }

    /** Returns what to change; a sentence without its full stop. */
    public String action() {
        return action;
    }
}
