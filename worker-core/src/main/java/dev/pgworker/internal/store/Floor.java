package dev.pgworker.internal.store;

import java.time.Instant;
import java.util.Collection;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.SqlRows;
import dev.pgworker.internal.jdbc.Timestamps;

/**
 * A place in the order of due jobs of one kind, before which a worker need not look.
 *
 * @param runAt when the job there is due
 * @param jobId its id, or one that decides between jobs that are due at the same time
 */
public record Floor(Kind kind, Instant runAt, long jobId) {

    /** The jobs that have an order of their own: those of a priority, with or without a queue. */
    public record Kind(boolean queued, int priority) implements Comparable<Kind> {

        /** The order in which claims walk them. */
        @Override
        public int compareTo(Kind other) {
            int order = Boolean.compare(queued, other.queued);
            return order == 0 ? Integer.compare(priority, other.priority) : order;
        }
    }

    /** Returns whether this lies before the other place of the same kind. */
    public boolean isBefore(Floor other) {
        int order = runAt.compareTo(other.runAt);
        return order < 0 || (order == 0 && jobId < other.jobId);
    }

    static @Nullable String text(@Nullable Collection<Floor> floors) {
        return floors == null ? null : SqlRows.array(floors.stream().map(Floor::row));
    }

    private String row() {
        String at = Timestamps.storable(runAt) ? Timestamps.text(runAt) : "-infinity";
        return SqlRows.row(kind.queued, kind.priority, at, jobId);
    }
}
