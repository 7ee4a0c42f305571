package dev.pgworker.limit;

import java.util.List;

/**
 * Thrown if the limits that an application declares cannot work, before any job runs.
 *
 * @since 0.1.0
 */
public final class LimitDefinitionException extends IllegalStateException {

    private static final long serialVersionUID = 1L;

    private final List<String> problems;

    LimitDefinitionException(List<String> problems) {
        super("Invalid limits: " + String.join("; ", problems));
        this.problems = List.copyOf(problems);
    }

    /** Returns all problems, each naming the method, the attribute and what is allowed, as an unmodifiable list. */
    public List<String> problems() {
        return problems;
    }
}
