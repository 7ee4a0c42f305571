package dev.pgworker.internal.store;

import java.sql.Array;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.SortedMap;

import dev.pgworker.internal.jdbc.SqlArrays;

/**
 * Where a claim looks for jobs without a queue.
 *
 * @param floors at which priorities, and from which place on; earlier jobs are passed over
 * @param strays ids of earlier jobs to look at all the same
 */
public record ClaimStart(SortedMap<Integer, IndexPosition> floors, List<Long> strays) {

    Integer[] levels() {
        return floors.keySet().toArray(Integer[]::new);
    }

    Array runAts(Connection connection) throws SQLException {
        return IndexPosition.runAts(connection, floors.values().stream());
    }

    Array ids(Connection connection) throws SQLException {
        return SqlArrays.ids(connection, floors.values().stream().map(IndexPosition::jobId));
    }
}
