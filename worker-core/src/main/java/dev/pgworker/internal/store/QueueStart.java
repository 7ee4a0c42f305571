package dev.pgworker.internal.store;

import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.Collection;
import java.util.List;
import java.util.function.ToIntFunction;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.SqlArrays;

/**
 * Where a claim or a completion looks for jobs of queues; earlier jobs are passed over, and so are other priorities.
 *
 * @param floors for each priority one for all queues, and one for each queue to which that does not apply
 */
public record QueueStart(List<Floor> floors) {

    /** The arguments of the schema's functions that {@link #set} sets. */
    static final String ARGUMENTS = "lane_queues => ?, lane_levels => ?, lane_run_ats => ?, lane_ids => ?";

    /**
     * A place below which nothing is looked at.
     *
     * @param queueId 0 for all queues that have no floors of their own
     * @param queueName null for these
     */
    public record Floor(int queueId, @Nullable String queueName, int priority, IndexPosition place) {

        /** Returns this floor at another place. */
        public Floor at(IndexPosition other) {
            return new Floor(queueId, queueName, priority, other);
        }
    }

    /** Returns those of these floors that apply to the queues with these names. */
    public QueueStart of(Collection<String> queueNames) {
        return new QueueStart(floors.stream()
                .filter(floor -> floor.queueName == null || queueNames.contains(floor.queueName))
                .toList());
    }

    Array ints(Connection connection, ToIntFunction<Floor> of) throws SQLException {
        return connection.createArrayOf(
                "int4", floors.stream().map(of::applyAsInt).toArray(Integer[]::new));
    }

    static void set(PreparedStatement statement, int first, @Nullable QueueStart start) throws SQLException {
        Connection connection = statement.getConnection();
        statement.setArray(first, start == null ? null : start.ints(connection, Floor::queueId));
        statement.setArray(first + 1, start == null ? null : start.ints(connection, Floor::priority));
        statement.setArray(
                first + 2,
                start == null
                        ? null
                        : IndexPosition.runAts(connection, start.floors.stream().map(Floor::place)));
        statement.setArray(
                first + 3,
                start == null
                        ? null
                        : SqlArrays.ids(connection, start.floors.stream().map(floor -> floor.place.jobId())));
    }
}
