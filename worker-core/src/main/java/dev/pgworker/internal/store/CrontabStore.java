package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.SqlArrays;
import dev.pgworker.internal.jdbc.StaleConnections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.job.JobSpec;
import dev.pgworker.schema.WorkerSchema;

/**
 * The register of recurring jobs, shared with all workers of the schema, in which an item's last execution advances in
 * the transaction that adds its jobs. Each method takes a connection of its own and commits before it returns. Plain JDBC, for
 * the reason that the package gives.
 */
public final class CrontabStore {

    /** How long all items together wait for a lock. Others hold these for milliseconds, unless their transaction hangs. */
    private static final Duration LOCK_LIMIT = Duration.ofSeconds(1);

    /** The same for one item, when it is known that some have to wait. */
    private static final Duration LOCK_LIMIT_ALONE = Duration.ofMillis(200);

    /** How long items that have to wait may do so one after the other, before the clock is looked at again. */
    private static final Duration ALL_ALONE = Duration.ofSeconds(2);

    /** How long one item may wait while others may be free. */
    private static final Duration LOCK_LIMIT_PASSING = Duration.ofMillis(5);

    /** So many that are slow may hold up the others of their minute. */
    private static final int MOST_SLOW = 4;

    private static final int MOST_CONFLICTS = 5;

    private static final String QUERY_CANCELED = "57014";

    private final DataSource dataSource;
    private final WorkerSchema schema;

    /** Creates a store for one schema. */
    public CrontabStore(DataSource dataSource, WorkerSchema schema) {
        this.dataSource = dataSource;
        this.schema = schema;
    }

    /**
     * What the database knows of an item.
     *
     * @param since when the item was first seen
     * @param lastExecution the last minute for which it was executed; null for none
     */
    public record Known(Instant since, @Nullable Instant lastExecution) {}

    /** How long a statement may take that adds jobs: triggers may be slow. */
    public enum Adding {
        /** Others wait for it. */
        IN_TIME(Duration.ofMillis(1_500), Duration.ofMillis(250)),
        /** Only those that are behind, too, wait for it. */
        BEHIND(Duration.ofSeconds(20), Duration.ofSeconds(20));

        private final Duration together;
        private final Duration alone;

        Adding(Duration together, Duration alone) {
            this.together = together;
            this.alone = alone;
        }
    }

    /**
     * One execution of an item.
     *
     * @param identifier the item's identifier
     * @param tick the minute for which it is due
     * @param task the task to run
     * @param payload the job's payload, JSON; null if there is to be no job
     * @param spec how to schedule the job; its {@code runAt} is not used
     */
    public record Execution(
            String identifier,
            Instant tick,
            String task,
            @Nullable String payload,
            JobSpec spec) {

        /** Returns one that counts as executed, but adds no job. */
        public static Execution passedOver(String identifier, Instant tick) {
            return new Execution(identifier, tick, "", null, JobSpec.DEFAULT);
        }
    }

    /**
     * What became of some executions. Those in no part had been executed before, by this or another worker, or were to add
     * no job.
     *
     * @param added the id of the job of each execution, in the order of the ids
     * @param paused the executions whose item is paused: they are recorded without a job
     * @param failed why items could not be executed, by identifier; none of their executions is recorded
     * @param held the same for items that another transaction is in the way of, with a lock on the job of their key or on
     *     their row of the register, and for those that take too long for others to wait
     */
    public record Result(
            Map<Execution, Long> added,
            List<Execution> paused,
            Map<String, SQLException> failed,
            Map<String, SQLException> held) {

        private Result() {
            this(new LinkedHashMap<>(), new ArrayList<>(), new LinkedHashMap<>(), new LinkedHashMap<>());
        }
    }

    /** How long the server may take for one statement: a year of minutes is caught up on in statements of thousands of jobs. */
    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(30);

    private static final String NOW = """
            select pg_catalog.clock_timestamp()
            """;

    /** Returns the database's time. */
    public Instant now() throws SQLException {
        return Connections.call(dataSource, NOW, ANSWER_LIMIT, (connection, statement) -> {
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return Timestamps.instant(row, 1);
            }
        });
    }

    private static final String REMEMBER = """
            insert into {schema}._private_known_crontabs (identifier, known_since)
            select i.identifier, ?::pg_catalog.timestamptz from pg_catalog.unnest(?::pg_catalog.text[]) i(identifier)
            order by i.identifier
            on conflict (identifier) do nothing
            """;

    private static final String KNOWN = """
            select identifier, known_since, last_execution from {schema}._private_known_crontabs
            where identifier = any(?)
            """;

    /**
     * Registers the items that are unknown as known since the given time, and returns what was known before. One that an open
     * transaction is in the way of is left out: {@link #known} shows it.
     */
    public Map<String, Known> register(Collection<String> identifiers, Instant since) throws SQLException {
        Map<String, Known> known = known(identifiers);
        if (!remember(identifiers, since, LOCK_LIMIT)) {
            for (String identifier : identifiers) {
                boolean unusedHeld = remember(List.of(identifier), since, LOCK_LIMIT_PASSING);
            }
        }
        return known;
    }

    /** Returns what is known of the items that are registered. */
    public Map<String, Known> known(Collection<String> identifiers) throws SQLException {
        return Connections.call(dataSource, schema.in(KNOWN), ANSWER_LIMIT, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("text", identifiers.toArray()));
            return known(statement);
        });
    }

    /** Returns false if an open transaction is in the way. */
    private boolean remember(Collection<String> identifiers, Instant since, Duration lockLimit) throws SQLException {
        try {
            return limitingLocks(lockLimit, connection -> {
                remember(connection, identifiers, since);
                return true;
            });
        } catch (SQLException e) {
            if (isHeld(e)) {
                return false;
            }
            throw e;
        }
    }

    private void remember(Connection connection, Collection<String> identifiers, Instant since) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(REMEMBER))) {
            statement.setObject(1, Timestamps.offset(since), Types.TIMESTAMP_WITH_TIMEZONE);
            statement.setArray(2, connection.createArrayOf("text", identifiers.toArray()));
            statement.executeUpdate();
        }
    }

    /**
     * Adds the jobs of those executions whose minute lies after the item's last one, which becomes the latest minute
     * given, unless the item is paused or the execution has no payload. An item that fails, or that an open transaction is in the way of, keeps none of its
     * executions and does not stop the others.
     *
     * @param executions in the order in which to add the jobs, no item twice in a minute
     * @throws SQLException if the database cannot be used; none, some or all of the items may have been executed
     */
    public Result execute(List<Execution> executions, Adding adding) throws SQLException {
        try {
            return executeTogether(executions, LOCK_LIMIT, adding.together);
        } catch (SQLException e) {
            if (DatabaseFailure.of(e) == DatabaseFailure.OUTAGE) {
                throw e;
            }
            return executeOneByOne(executions, adding);
        }
    }

    /** Returns whether an item was not executed because that takes too long for others to wait. */
    public static boolean isSlow(SQLException e) {
        return QUERY_CANCELED.equals(e.getSQLState());
    }

    private Result executeOneByOne(List<Execution> executions, Adding adding) throws SQLException {
        Map<String, List<Execution>> items = new LinkedHashMap<>();
        executions.forEach(execution -> items.computeIfAbsent(execution.identifier(), i -> new ArrayList<>())
                .add(execution));
        Result all = new Result();
        // First those that no session is in the way of, which are not to wait for the others.
        executeEach(items, LOCK_LIMIT_PASSING, adding, null, all);
        items.keySet().removeIf(item -> {
            SQLException failure = all.held().get(item);
            return failure == null || isSlow(failure);
        });
        executeEach(items, LOCK_LIMIT_ALONE, adding, ALL_ALONE, all);
        return all;
    }

    /** Stops after the time given, if one is. */
    private void executeEach(
            Map<String, List<Execution>> items,
            Duration lockLimit,
            Adding adding,
            @Nullable Duration allTogether,
            Result all)
            throws SQLException {
        long begin = System.nanoTime();
        List<SQLException> slow = new ArrayList<>();
        for (Map.Entry<String, List<Execution>> item : items.entrySet()) {
            if (allTogether != null && System.nanoTime() - begin > allTogether.toNanos()) {
                return;
            }
            if (slow.size() == MOST_SLOW) {
                all.held().put(item.getKey(), slow.get(0));
                continue;
            }
            try {
                Result result = executeItem(item.getValue(), lockLimit, adding.alone);
                all.added().putAll(result.added());
                all.paused().addAll(result.paused());
                all.held().remove(item.getKey());
            } catch (SQLException e) {
                DatabaseFailure kind = DatabaseFailure.of(e);
                if (kind == DatabaseFailure.OUTAGE) {
                    throw e;
                }
                all.held().remove(item.getKey());
                boolean isSlow = adding == Adding.IN_TIME && isSlow(e);
                if (isSlow) {
                    slow.add(e);
                }
                (isSlow || isHeld(e) ? all.held() : all.failed()).put(item.getKey(), e);
            }
        }
    }

    private Result executeItem(List<Execution> executions, Duration lockLimit, Duration adding) throws SQLException {
        for (int attempt = 1; ; attempt++) {
            try {
                return executeTogether(executions, lockLimit, adding);
            } catch (SQLException e) {
                if (DatabaseFailure.of(e) != DatabaseFailure.CONFLICT || attempt == MOST_CONFLICTS) {
                    throw e;
                }
            }
        }
    }

    private static boolean isHeld(SQLException e) {
        return "55P03".equals(e.getSQLState());
    }

    private static final String LIMIT_LOCKS = """
            select pg_catalog.set_config('lock_timeout', ?, true)
            """;

    private static final String LIMIT_ADDING = """
            select pg_catalog.set_config('statement_timeout', ?, true)
            """;

    private Result executeTogether(List<Execution> executions, Duration lockLimit, Duration adding)
            throws SQLException {
        return limitingLocks(lockLimit, connection -> {
            try (PreparedStatement limit = connection.prepareStatement(LIMIT_ADDING)) {
                limit.setString(1, adding.toMillis() + "ms");
                limit.execute();
            }
            Map<String, Known> known = lock(connection, executions);
            List<Execution> due = executions.stream()
                    .filter(execution -> isAfterLast(execution, known.get(execution.identifier())))
                    .toList();
            return due.isEmpty() ? new Result() : add(connection, due);
        });
    }

    /** Works in a transaction of its own, in which no statement waits longer than that for a lock. */
    private <T> T limitingLocks(Duration lockLimit, StaleConnections.Work<T> work) throws SQLException {
        return Connections.transact(dataSource, ANSWER_LIMIT, connection -> {
            try (PreparedStatement limit = connection.prepareStatement(LIMIT_LOCKS)) {
                limit.setString(1, lockLimit.toMillis() + "ms");
                limit.execute();
            }
            return work.on(connection);
        });
    }

    private static boolean isAfterLast(Execution execution, @Nullable Known known) {
        return known != null
                && (known.lastExecution() == null || execution.tick().isAfter(known.lastExecution()));
    }

    private static final String LOCK = """
            select identifier, known_since, last_execution from {schema}._private_known_crontabs
            where identifier = any(?)
            order by identifier for update
            """;

    private Map<String, Known> lock(Connection connection, List<Execution> executions) throws SQLException {
        if (executions.isEmpty()) {
            return Map.of();
        }
        List<String> identifiers =
                executions.stream().map(Execution::identifier).distinct().toList();
        remember(connection, identifiers, executions.get(0).tick());
        try (PreparedStatement lock = connection.prepareStatement(schema.in(LOCK))) {
            lock.setArray(1, connection.createArrayOf("text", identifiers.toArray()));
            return known(lock);
        }
    }

    /** Sees every pause that has returned: that has locked the same row of the register. */
    private static final String ADD = """
            with due as (
              select *, exists (
                select from {schema}.pgworker_paused_crontabs p where p.identifier = d.identifier) as paused
              from unnest(?, ?::pg_catalog.timestamptz[], ?, ?, ?, ?, ?, ?, ?, ?) with ordinality
                d(identifier, tick, task, payload, queue_name, max_attempts, job_key, priority, flags, mode, place)),
            advanced as (
              update {schema}._private_known_crontabs k set last_execution = l.tick
              from (select d.identifier, pg_catalog.max(d.tick) as tick from due d group by d.identifier) l
              where k.identifier = l.identifier)
            select d.place, d.paused, case when not d.paused and d.payload is not null then
              coalesce(
                ({schema}.add_job(
                  identifier => d.task, payload => d.payload::pg_catalog.json, queue_name => d.queue_name, run_at => d.tick,
                  max_attempts => d.max_attempts, job_key => d.job_key, priority => d.priority,
                  flags => d.flags::pg_catalog.text[], job_key_mode => d.mode)).id,
                {schema}.pgworker_kept_out(0, 1))
            end
            from (select * from due order by place) d
            """;

    private Result add(Connection connection, List<Execution> due) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(ADD))) {
            statement.setArray(1, SqlArrays.array(connection, "text", due, Execution::identifier));
            statement.setArray(2, SqlArrays.times(connection, due, Execution::tick));
            statement.setArray(3, SqlArrays.array(connection, "text", due, Execution::task));
            statement.setArray(4, SqlArrays.array(connection, "text", due, Execution::payload));
            statement.setArray(5, SqlArrays.array(connection, "text", due, one -> one.spec.queueName()));
            statement.setArray(6, SqlArrays.array(connection, "int4", due, one -> one.spec.maxAttempts()));
            statement.setArray(7, SqlArrays.array(connection, "text", due, one -> one.spec.jobKey()));
            statement.setArray(8, SqlArrays.array(connection, "int4", due, one -> one.spec.priority()));
            statement.setArray(9, SqlArrays.array(connection, "text", due, one -> JobRows.flags(one.spec)));
            statement.setArray(
                    10,
                    SqlArrays.array(
                            connection,
                            "text",
                            due,
                            one -> JobRows.keyMode(one.spec).sqlName()));
            Result result = new Result();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    Execution execution = due.get(rows.getInt(1) - 1);
                    long id = rows.getLong(3);
                    if (!rows.wasNull()) {
                        result.added().put(execution, id);
                    } else if (rows.getBoolean(2)) {
                        result.paused().add(execution);
                    }
                }
            }
            return result;
        }
    }

    private static Map<String, Known> known(PreparedStatement statement) throws SQLException {
        Map<String, Known> known = new HashMap<>();
        try (ResultSet rows = statement.executeQuery()) {
            while (rows.next()) {
                known.put(
                        rows.getString(1), new Known(Timestamps.instant(rows, 2), Timestamps.nullableInstant(rows, 3)));
            }
        }
        return known;
    }
}
