package dev.pgworker.test;

import org.assertj.core.api.AbstractAssert;

import dev.pgworker.job.Task;
import dev.pgworker.test.JobRun.Outcome;

/**
 * Assertions on the attempts that a worker made. A failure shows all of them.
 *
 * @since 0.1.0
 */
public final class JobRunsAssert extends AbstractAssert<JobRunsAssert, JobRuns> {

    JobRunsAssert(JobRuns actual) {
        super(actual, JobRunsAssert.class);
    }

    /** Verifies that no job was run. */
    public JobRunsAssert isEmpty() {
        return hasSize(0);
    }

    /** Verifies how many attempts there were. */
    public JobRunsAssert hasSize(int expected) {
        isNotNull();
        if (actual.size() != expected) {
            throw unexpected("Expecting " + expected + " runs but was:");
        }
        return this;
    }

    /** Verifies that at least one job was run and every attempt completed its job. The failure's cause is the first error. */
    public JobRunsAssert allCompleted() {
        isNotNull();
        if (actual.size() == 0) {
            throw unexpected("Expecting completed jobs but was:");
        }
        if (actual.list().stream().anyMatch(run -> run.outcome() != Outcome.COMPLETED)) {
            throw unexpected("Expecting all jobs to be completed but was:");
        }
        return this;
    }

    /** Verifies that exactly one attempt was of this task, and returns the assertions on it. */
    public JobRunAssert hasRun(Task<?> task) {
        return hasRun(task.identifier());
    }

    /** Verifies that exactly one attempt was of the task with this identifier, and returns the assertions on it. */
    public JobRunAssert hasRun(String identifier) {
        isNotNull();
        JobRuns runs = actual.of(identifier);
        if (runs.size() != 1) {
            throw unexpected("Expecting one run of task \"" + identifier + "\" but was:");
        }
        return runs.list().get(0).assertThat();
    }

    private AssertionError unexpected(String message) {
        AssertionError failure = failure("%s%n%s", message, actual);
        actual.list().stream()
                .filter(run -> run.error() != null && failure.getCause() == null)
                .findFirst()
                .ifPresent(run -> failure.initCause(run.error()));
        return failure;
    }
}
