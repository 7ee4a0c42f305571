package dev.pgworker.internal.store;

import java.sql.Array;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.StatementCall;
import dev.pgworker.schema.WorkerSchema;

/**
 * The limits of the database, as workers see them that let jobs through. Each method takes a connection of its own and commits
 * before it returns. Plain JDBC, for the reason that the package gives. Thread-safe.
 */
public final class LimitStore {

    /** How long the server may take for one statement. */
    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(30);

    private final DataSource dataSource;
    private final WorkerSchema schema;
    private final String workerId;

    /** Creates a store for one worker. */
    public LimitStore(DataSource dataSource, WorkerSchema schema, String workerId) {
        this.dataSource = dataSource;
        this.schema = schema;
        this.workerId = workerId;
    }

    /**
     * How things stand.
     *
     * @param limits by name
     * @param rank how many live workers serve all limited tasks that this one serves, and come before it
     */
    public record Look(Map<String, Known> limits, int rank) {

        /** Returns the tasks of limits that are not in effect, of which no job must start. */
        public Set<String> heldBack() {
            Set<String> tasks = new HashSet<>();
            limits.values().stream().filter(Known::isApplying).forEach(limit -> tasks.addAll(limit.tasks));
            return tasks;
        }

        /** Returns the tasks that have a limit of how many jobs start in a period. */
        public Set<String> rated() {
            Set<String> tasks = new HashSet<>();
            limits.values().stream().filter(Known::rate).forEach(limit -> tasks.addAll(limit.tasks));
            return tasks;
        }

        /** Returns whether limits are about to take effect, or to end. */
        public boolean isPending() {
            return limits.values().stream().anyMatch(limit -> !limit.state.equals("active"));
        }

        /** Returns whether there is something to do before all limits are as they should be. */
        public boolean isUnsettled() {
            return limits.values().stream().anyMatch(limit -> !limit.settled);
        }

        /** Returns which of the given tasks have a limit. */
        public Set<String> limited(Collection<String> tasks) {
            Set<String> limited = new HashSet<>();
            limits.values().forEach(limit -> limited.addAll(limit.tasks));
            limited.retainAll(tasks);
            return limited;
        }
    }

    /**
     * A limit.
     *
     * @param settled whether nothing is left to do for it
     * @param rate whether it limits how many jobs start in a period
     */
    public record Known(Set<String> tasks, String state, boolean declared, boolean settled, boolean rate) {

        /** Returns whether it is about to take effect. */
        public boolean isApplying() {
            return state.equals("applying");
        }
    }

    private static final String LOOK = """
            select l.name, l.task_identifiers, l.state, l.declared,
              (l.state operator(pg_catalog.=) 'active') and l.settled and l.place is null, l.max_starts is not null
            from {schema}.pgworker_limits l
            """;

    private static final String WAITS = """
            select pg_catalog.count(*) from (
              select from {schema}._private_jobs j
              where j.locked_at operator(pg_catalog.=) '9999-01-01 00:00:00+00'::pg_catalog.timestamptz
                and j.task_id operator(pg_catalog.=) any (array(
                  select t.id from {schema}._private_tasks t where t.identifier operator(pg_catalog.=) any (?::pg_catalog.text[])))
              order by j.locked_by collate pg_catalog."C", j.priority, j.run_at, j.id limit 1) w
            """;

    /** Returns whether a job of these tasks waits for a limit, for those who cannot read the limits. */
    public boolean anyWaits(Collection<String> tasks) throws SQLException {
        return call(WAITS, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("text", tasks.toArray()));
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getLong(1) > 0;
            }
        });
    }

    private static final String RANK = """
            select pg_catalog.count(*) from {schema}._private_workers w
            where w.id operator(pg_catalog.<) ?::pg_catalog.text
              and w.last_heartbeat_at operator(pg_catalog.>) (pg_catalog.now() operator(pg_catalog.-) interval '2 minutes')
              and (w.metadata operator(pg_catalog.->>) 'implementation') operator(pg_catalog.=) 'pgworker'
              and (w.metadata operator(pg_catalog.->) 'tasks') operator(pg_catalog.@>) pg_catalog.to_jsonb(?::pg_catalog.text[])
            """;

    /**
     * Reads the limits.
     *
     * @param served the tasks of the worker
     */
    public Look look(Collection<String> served) throws SQLException {
        Map<String, Known> limits = call(LOOK, (connection, statement) -> {
            Map<String, Known> read = new LinkedHashMap<>();
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    Set<String> tasks = Set.copyOf(texts(row.getArray(2)));
                    read.put(
                            row.getString(1),
                            new Known(
                                    tasks, row.getString(3), row.getBoolean(4), row.getBoolean(5), row.getBoolean(6)));
                }
            }
            return read;
        });
        Look look = new Look(limits, 0);
        // Of those that serve none of these tasks, one lets through what nobody serves.
        return limits.isEmpty() ? look : new Look(limits, rank(look.limited(served)));
    }

    private int rank(Set<String> limited) throws SQLException {
        return call(RANK, (connection, statement) -> {
            statement.setString(1, workerId);
            statement.setArray(2, connection.createArrayOf("text", limited.toArray()));
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getInt(1);
            }
        });
    }

    private static List<String> texts(@Nullable Array array) throws SQLException {
        return array == null ? List.of() : List.of((String[]) array.getArray());
    }

    /**
     * What to look at.
     *
     * @param tasks the tasks that this worker serves, as far as they are limited and not held back
     * @param lanes where jobs may have come
     * @param buckets where permits may have been given back
     * @param everything whether to look at all lanes with jobs, some hundreds at a time
     * @param after where to go on with everything; null to begin
     * @param most how many jobs to let through
     */
    public record Request(
            Collection<String> tasks,
            Collection<String> lanes,
            Collection<Long> buckets,
            boolean everything,
            @Nullable String after,
            int most) {}

    /**
     * What came of it.
     *
     * @param admitted how many jobs have been let through; if as many as were asked for, there may be more
     * @param nextAfter where to go on with everything; null at the end
     * @param waits in how many seconds to look at lanes again
     */
    public record Admission(long admitted, @Nullable String nextAfter, Map<String, Double> waits) {}

    private static final String ADMIT = """
            select a.admitted, a.next_after, a.waiting_lanes, a.waits
            from {schema}.pgworker_admit(
              task_ids => array(
                select t.id from {schema}._private_tasks t where t.identifier operator(pg_catalog.=) any (?::pg_catalog.text[])),
              lanes => ?, buckets => ?, everything => ?, after => ?, most => ?) a
            """;

    /** Lets jobs through for which there is room. */
    public Admission admit(Request request) throws SQLException {
        return call(ADMIT, (connection, statement) -> {
            statement.setArray(
                    1, connection.createArrayOf("text", request.tasks().toArray()));
            statement.setArray(
                    2, connection.createArrayOf("text", request.lanes().toArray()));
            statement.setArray(
                    3, connection.createArrayOf("int8", request.buckets().toArray()));
            statement.setBoolean(4, request.everything());
            statement.setString(5, request.after());
            statement.setInt(6, request.most());
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return new Admission(row.getLong(1), row.getString(2), waits(row.getArray(3), row.getArray(4)));
            }
        });
    }

    private static Map<String, Double> waits(@Nullable Array lanes, @Nullable Array waits) throws SQLException {
        Map<String, Double> all = new LinkedHashMap<>();
        if (lanes != null && waits != null) {
            String[] names = (String[]) lanes.getArray();
            Double[] seconds = (Double[]) waits.getArray();
            for (int i = 0; i < names.length; i++) {
                all.put(names[i], seconds[i]);
            }
        }
        return all;
    }

    /**
     * One step towards limits that are as they should be.
     *
     * @param name of which limit
     * @param state what it is afterwards
     * @param done whether nothing is left to do for it
     * @param note what is in the way: {@code busy} and {@code waiting} for a moment, {@code later} for a second; null for nothing
     */
    public record Step(
            @Nullable String name,
            String state,
            boolean done,
            @Nullable String note) {}

    private static final String APPLY = """
            select a.name, a.state, a.done, a.note from {schema}.pgworker_apply_limits() a
            """;

    /** Does something for limits that have been created, changed or deleted; returns no step if there is nothing to do. */
    public List<Step> apply() throws SQLException {
        return call(APPLY, (connection, statement) -> {
            List<Step> steps = new ArrayList<>();
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    steps.add(new Step(row.getString(1), row.getString(2), row.getBoolean(3), row.getString(4)));
                }
            }
            return steps;
        });
    }

    private static final String CHECK = "select {schema}.pgworker_check_permits()";

    /** Gives back permits of jobs that need none, and forgets lanes that are not used. */
    public long checkPermits() throws SQLException {
        return call(CHECK, (connection, statement) -> {
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getLong(1);
            }
        });
    }

    private <T> T call(String sql, StatementCall<T> call) throws SQLException {
        return Connections.call(dataSource, schema.in(sql), ANSWER_LIMIT, call);
    }
}
