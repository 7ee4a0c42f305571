package dev.pgworker.internal.store;

import java.sql.Array;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Instant;
import java.util.stream.Stream;

import dev.pgworker.internal.jdbc.Timestamps;

/**
 * A place among the jobs without a queue that have the same priority.
 *
 * @param runAt when the job there is due
 * @param jobId its id, or one that decides between jobs that are due at the same time
 */
public record IndexPosition(Instant runAt, long jobId) implements Comparable<IndexPosition> {

    /** The place before all jobs. */
    public static final IndexPosition FIRST = new IndexPosition(Instant.MIN, Long.MIN_VALUE);

    static Array runAts(Connection connection, Stream<IndexPosition> places) throws SQLException {
        return connection.createArrayOf(
                "timestamptz",
                places.map(place -> Timestamps.storable(place.runAt) ? Timestamps.text(place.runAt) : "-infinity")
                        .toArray(String[]::new));
    }

    @Override
    public int compareTo(IndexPosition other) {
        int order = runAt.compareTo(other.runAt);
        return order == 0 ? Long.compare(jobId, other.jobId) : order;
    }
}
