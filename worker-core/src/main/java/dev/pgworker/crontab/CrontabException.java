package dev.pgworker.crontab;

import java.util.List;
import java.util.stream.Collectors;

/**
 * Thrown for an invalid crontab. Lists all errors at once.
 *
 * @since 0.1.0
 */
public final class CrontabException extends IllegalArgumentException {

    private static final long serialVersionUID = 1L;

    private final transient List<CrontabProblem> problems;

    CrontabException(List<CrontabProblem> problems) {
        super(problems.stream().map(CrontabProblem::toString).collect(Collectors.joining("\n")));
        this.problems = List.copyOf(problems);
    }

    /** Returns all errors, in the order of the text; never empty. */
    public List<CrontabProblem> problems() {
        return problems;
    }
}
