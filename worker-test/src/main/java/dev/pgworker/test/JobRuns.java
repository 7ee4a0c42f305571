package dev.pgworker.test;

import java.util.List;
import java.util.stream.Collectors;

import org.assertj.core.api.AssertProvider;

import dev.pgworker.job.Task;

/**
 * The attempts that a worker made, in the order in which they ended. Immutable. {@code assertThat(runs)} gives a {@link
 * JobRunsAssert}.
 *
 * @since 0.1.0
 */
public final class JobRuns implements AssertProvider<JobRunsAssert> {

    private final List<JobRun> runs;

    JobRuns(List<JobRun> runs) {
        this.runs = List.copyOf(runs);
    }

    /** Returns all attempts, unmodifiable. */
    public List<JobRun> list() {
        return runs;
    }

    /** Returns how many attempts there are. */
    public int size() {
        return runs.size();
    }

    /** Returns the attempts of one task's jobs. */
    public JobRuns of(Task<?> task) {
        return of(task.identifier());
    }

    /** Returns the attempts of the jobs of the task with this identifier. */
    public JobRuns of(String identifier) {
        return new JobRuns(runs.stream()
                .filter(run -> run.job().taskIdentifier().equals(identifier))
                .toList());
    }

    /** Returns the assertions on these runs; called by AssertJ. */
    @Override
    public JobRunsAssert assertThat() {
        return new JobRunsAssert(this);
    }

    /** Returns the runs, each on a line of its own. */
    @Override
    public String toString() {
        return runs.isEmpty()
                ? "no job has run"
                : runs.stream().map(run -> "  " + run).collect(Collectors.joining("\n", runs.size() + " run:\n", ""));
    }
}
