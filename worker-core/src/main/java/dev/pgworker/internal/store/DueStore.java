package dev.pgworker.internal.store;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.SqlArrays;
import dev.pgworker.internal.jdbc.Timestamps;

/** Which jobs are due, will be, or are passed over by claims that begin at floors. Changes nothing. Thread-safe. */
public final class DueStore {

    private final JobSql sql;

    DueStore(JobSql sql) {
        this.sql = sql;
    }

    private static final String WAITS = """
            select {schema}.pgworker_waits(task_ids => ?, forbidden => ?, longer_than => ?::double precision * interval '1 second')
            """;

    /** Returns whether a job that this worker may run has been due for longer than that. */
    public boolean waits(TaskIds tasks, Collection<String> forbidden, Duration longerThan) throws SQLException {
        return sql.call(WAITS, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("int4", tasks.unqueuedIds()));
            statement.setArray(2, SqlArrays.texts(connection, forbidden));
            statement.setDouble(3, longerThan.toNanos() / 1e9);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getBoolean(1);
            }
        });
    }

    private static final String NEXT_DUE = """
            select {schema}.pgworker_next_due(task_ids => ?, elapsed => ?, levels => ?, lane_levels => ?)
            """;

    /**
     * Returns how long it takes, by the database's clock, until the next job of these tasks is due that was not due yet
     * at a moment in the past: negative if it fell due since, null if there is none.
     *
     * @param elapsed the time since that moment, which should lie just before the last claim
     * @param levels the priorities of jobs without a queue to look at; null to look at all
     */
    public @Nullable Duration nextDue(TaskIds tasks, Duration elapsed, @Nullable Collection<Integer> levels)
            throws SQLException {
        return nextDue(tasks, elapsed, levels, null);
    }

    /**
     * As {@link #nextDue(TaskIds, Duration, Collection)}.
     *
     * @param queueLevels the priorities of jobs of queues to look at; null to look at all
     */
    public @Nullable Duration nextDue(
            TaskIds tasks,
            Duration elapsed,
            @Nullable Collection<Integer> levels,
            @Nullable Collection<Integer> queueLevels)
            throws SQLException {
        return sql.<@Nullable Duration>call(NEXT_DUE, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("int4", tasks.ids()));
            statement.setDouble(2, elapsed.toNanos() / 1e9);
            statement.setArray(
                    3, levels == null ? null : connection.createArrayOf("int4", levels.toArray(Integer[]::new)));
            statement.setArray(
                    4,
                    queueLevels == null ? null : connection.createArrayOf("int4", queueLevels.toArray(Integer[]::new)));
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                double seconds = row.getDouble(1);
                return row.wasNull() ? null : Duration.ofNanos((long) Math.min(seconds * 1e9, 1e18));
            }
        });
    }

    private static final String DUE_TIMES = """
            select level, seconds from {schema}.pgworker_due_times(task_ids => ?, since => ?::pg_catalog.timestamptz, levels => ?)
            """;

    /**
     * As {@link #nextDue}, for each of these priorities, and for jobs without a queue alone.
     *
     * @param since the moment in the past
     * @return the priorities at which a job is to become due
     */
    public Map<Integer, Duration> dueTimes(TaskIds tasks, Instant since, Collection<Integer> levels)
            throws SQLException {
        return sql.call(DUE_TIMES, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("int4", tasks.ids()));
            statement.setString(2, Timestamps.text(since));
            statement.setArray(3, connection.createArrayOf("int4", levels.toArray(Integer[]::new)));
            Map<Integer, Duration> due = new HashMap<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    due.put(rows.getInt(1), Duration.ofNanos((long) Math.min(rows.getDouble(2) * 1e9, 1e18)));
                }
            }
            return due;
        });
    }

    private static final String LOOK_BELOW = """
            select levels, strays from {schema}.pgworker_look_below(
              task_ids => ?, forbidden => ?, floor_levels => ?, floor_run_ats => ?, floor_ids => ?, most_levels => ?, most_strays => ?)
            """;

    /**
     * Looks for what claims pass over that begin so. Takes long where much is left of finished jobs.
     *
     * @param forbidden flags whose jobs are passed over
     */
    public FloorScan scanBelow(
            TaskIds tasks, Collection<String> forbidden, ClaimStart start, int mostLevels, int mostStrays)
            throws SQLException {
        return sql.call(LOOK_BELOW, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("int4", tasks.unqueuedIds()));
            statement.setArray(2, SqlArrays.texts(connection, forbidden));
            statement.setArray(3, connection.createArrayOf("int4", start.levels()));
            statement.setArray(4, start.runAts(connection));
            statement.setArray(5, start.ids(connection));
            statement.setInt(6, mostLevels);
            statement.setInt(7, mostStrays);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return new FloorScan(List.of((Integer[]) row.getArray(1).getArray()), List.of((Long[])
                        row.getArray(2).getArray()));
            }
        });
    }

    private static final String LOOK_AT_QUEUES =
            "select queue_id, queue_name, level, run_at, id from {schema}.pgworker_look_at_queues("
                    + "task_ids => ?, forbidden => ?, most_levels => ?, most_lanes => ?, " + QueueStart.ARGUMENTS + ")";

    /**
     * Looks for where the jobs of queues are. Without floors to begin from it takes long where much is left of finished jobs.
     *
     * @param forbidden flags whose jobs are passed over by claims
     * @param mostLanes how many queues may have floors of their own
     * @param from where to begin; null for the first entry
     * @return floors below which there are no jobs, or none that are not below those to begin from; null if there are too many priorities
     */
    public @Nullable QueueStart scanQueues(
            TaskIds tasks, Collection<String> forbidden, int mostLevels, int mostLanes, @Nullable QueueStart from)
            throws SQLException {
        return sql.<@Nullable QueueStart>call(LOOK_AT_QUEUES, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("int4", tasks.ids()));
            statement.setArray(2, SqlArrays.texts(connection, forbidden));
            statement.setInt(3, mostLevels);
            statement.setInt(4, mostLanes);
            QueueStart.set(statement, 5, from);
            List<QueueStart.Floor> floors = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    if (rows.getInt(1) < 0) {
                        return null;
                    }
                    Instant runAt = Timestamps.instant(rows, 4);
                    long id = rows.getLong(5);
                    floors.add(new QueueStart.Floor(
                            rows.getInt(1),
                            rows.getString(2),
                            rows.getInt(3),
                            new IndexPosition(runAt, rows.wasNull() ? Long.MIN_VALUE : id)));
                }
            }
            return new QueueStart(floors);
        });
    }
}
