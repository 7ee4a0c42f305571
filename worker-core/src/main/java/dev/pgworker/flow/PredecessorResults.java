package dev.pgworker.flow;

import java.util.List;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.job.Task;

/**
 * How the jobs have ended that a job has waited for. A handler method may have it as a parameter:
 *
 * <pre>{@code
 * @JobHandler("bind")
 * void bind(Book book, PredecessorResults chapters) {
 *     for (PredecessorResult chapter : chapters.of(RENDER)) {
 *         add(chapter.as(Pages.class));
 *     }
 * }
 * }</pre>
 *
 * <p>Read from the database with one statement when it is first used, on the calling thread. Results are kept until an hour after
 * the last of the jobs has ended that has waited for them.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface PredecessorResults {

    /** Those of a job that has waited for none. */
    PredecessorResults NONE = List::of;

    /** Returns all of them, in the order of the jobs' ids. */
    List<PredecessorResult> all();

    /** Returns those of a task, in the order of the jobs' ids. */
    default List<PredecessorResult> of(Task<?> task) {
        String identifier = Arguments.requireNonNull("task", task).identifier();
        return all().stream()
                .filter(one -> one.taskIdentifier().equals(identifier))
                .toList();
    }

    /**
     * Returns the only one of a task.
     *
     * @throws IllegalStateException if there is none, or more than one
     */
    default PredecessorResult only(Task<?> task) {
        List<PredecessorResult> found = of(task);
        if (found.size() != 1) {
            throw new IllegalStateException("There must be one predecessor of task \"" + task.identifier()
                    + "\", but there are " + found.size() + " among " + all().size() + " predecessors");
        }
        return found.get(0);
    }
}
