package dev.pgworker.internal.store;

import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.function.ToIntFunction;
import java.util.stream.Stream;

import dev.pgworker.internal.jdbc.SqlRows;

/**
 * What claims of a worker ask for, and looks for due jobs.
 *
 * @param forbidden flags whose jobs are left out
 * @param runOfTask how many jobs of a queue to take together if the first is of this task
 * @param share how many of a queue at most, as long as other queues have jobs
 * @param fromFirst whether to take the very first jobs of a queue, wherever the floors are
 * @param passed ids of jobs that are left out, with their queues
 */
public record ClaimRequest(
        TaskIds tasks,
        Collection<String> forbidden,
        ToIntFunction<String> runOfTask,
        int share,
        boolean fromFirst,
        Collection<Long> passed) {

    private static final int USUAL_SHARE = 12;

    /** Asks for single jobs of queues. */
    public static ClaimRequest of(TaskIds tasks, Collection<String> forbidden) {
        return of(tasks, forbidden, List.of());
    }

    /** Asks for single jobs of queues, without those passed over. */
    public static ClaimRequest of(TaskIds tasks, Collection<String> forbidden, Collection<Long> passed) {
        return new ClaimRequest(tasks, forbidden, task -> 1, USUAL_SHARE, true, passed);
    }

    String text(String workerId) {
        Integer[] ids = tasks.queued() ? tasks.ids() : new Integer[0];
        Stream<Integer> runs = Stream.of(ids)
                .map(id -> runOfTask.applyAsInt(
                        Objects.requireNonNull(tasks.identifiers().get(id))));
        return SqlRows.row(
                workerId,
                SqlRows.array(Stream.of(ids)),
                tasks.queued() && tasks.onlyQueued().isEmpty() ? null : SqlRows.array(Stream.of(tasks.unqueuedIds())),
                SqlRows.array(runs),
                share,
                fromFirst,
                forbidden.isEmpty() ? null : SqlRows.array(forbidden),
                passed.isEmpty() ? null : SqlRows.array(passed));
    }
}
