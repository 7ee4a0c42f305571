package dev.pgworker.internal.client;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;

import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.job.CleanupResult;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.schema.WorkerSchema;

/**
 * Removes unused tasks and queues, and jobs that have failed permanently, in transactions of its own.
 *
 * <p>{@code add_job} looks up the id of a task or queue without locking the row, so a row that no job uses may be about
 * to get one. But whoever has looked an id up holds an ACCESS SHARE lock on the table until the transaction ends. Once
 * this class holds the ACCESS EXCLUSIVE lock, no such transaction is left, and what no job uses then stays unused:
 * later adders wait, and look the name up after the row is gone. Waiting for the lock makes all others wait behind it,
 * so each try is short.
 */
final class Cleanup {

    private static final String LOCK_NOT_AVAILABLE = "55P03";
    private static final String DEADLOCK = "40P01";
    private static final String QUERY_CANCELED = "57014";

    /** How long each try waits for the lock, in milliseconds. */
    private static final List<Integer> PATIENCE = List.of(20, 50, 100, 200, 200);

    private static final Duration PAUSE = Duration.ofMillis(50);

    private final DataSource dataSource;
    private final WorkerSchema schema;

    Cleanup(DataSource dataSource, WorkerSchema schema) {
        this.dataSource = independent(dataSource);
        this.schema = schema;
    }

    /** Connections of a transaction-aware proxy may be those of the caller's transaction, which must not be ended. */
    private static DataSource independent(DataSource dataSource) {
        DataSource target =
                dataSource instanceof TransactionAwareDataSourceProxy proxy ? proxy.getTargetDataSource() : null;
        return target == null ? dataSource : independent(target);
    }

    /** Failed jobs go first: they are the last users of some queues and tasks. */
    CleanupResult run(Set<CleanupTask> tasks) throws SQLException {
        Map<CleanupTask, Long> deleted = new EnumMap<>(CleanupTask.class);
        Set<CleanupTask> skipped = EnumSet.noneOf(CleanupTask.class);
        if (tasks.isEmpty()) {
            return new CleanupResult(deleted, skipped);
        }
        try (Connection connection = dataSource.getConnection()) {
            if (tasks.contains(CleanupTask.DELETE_PERMAFAILED_JOBS)) {
                deleted.put(CleanupTask.DELETE_PERMAFAILED_JOBS, deleteFailedJobs(connection));
                sweepUp(connection);
            }
            for (Table table : Table.values()) {
                if (tasks.contains(table.task)) {
                    Long rows = deleteUnused(connection, table);
                    if (rows == null) {
                        skipped.add(table.task);
                    } else {
                        deleted.put(table.task, rows);
                    }
                }
            }
        }
        return new CleanupResult(deleted, skipped);
    }

    private static final String DELETE_FAILED = """
            with chunk as materialized (
              select j.id from {schema}._private_jobs j
              where j.id > ? and j.attempts >= j.max_attempts and j.locked_at is null
              order by j.id limit 5000 for update skip locked),
            gone as (delete from {schema}._private_jobs j using chunk c where j.id = c.id)
            select pg_catalog.count(*), pg_catalog.max(id) from chunk
            """;

    /** Each chunk starts where the one before ended, so the table is read once. */
    private long deleteFailedJobs(Connection connection) throws SQLException {
        long total = 0;
        long[] last = {0};
        while (true) {
            long count = Connections.inTransaction(connection, () -> {
                try (PreparedStatement statement = connection.prepareStatement(schema.in(DELETE_FAILED))) {
                    statement.setLong(1, last[0]);
                    try (ResultSet row = statement.executeQuery()) {
                        row.next();
                        last[0] = row.getLong(2);
                        return row.getLong(1);
                    }
                }
            });
            total += count;
            if (count == 0) {
                return total;
            }
        }
    }

    private static final String SWEEP_UP = """
            select {schema}.pgworker_sweep_up()
            """;

    private void sweepUp(Connection connection) throws SQLException {
        Connections.inTransaction(connection, () -> {
            try (PreparedStatement statement = connection.prepareStatement(schema.in(SWEEP_UP))) {
                return statement.execute();
            }
        });
    }

    /** A table whose rows jobs refer to. Ids are read apart from each other because that is fast in any order of size. */
    private enum Table {
        TASKS(CleanupTask.GC_TASK_IDENTIFIERS, "{schema}._private_tasks", """
                select t.id from {schema}._private_tasks t
                where t.identifier not in (
                  select served.identifier
                  from {schema}._private_workers w
                  cross join lateral pg_catalog.jsonb_array_elements_text(
                    case when pg_catalog.jsonb_typeof(w.metadata -> 'tasks'::pg_catalog.text) = 'array'
                      then w.metadata -> 'tasks'::pg_catalog.text else '[]' end
                  ) served(identifier)
                  where w.last_heartbeat_at > pg_catalog.now() - interval '1 hour' and served.identifier is not null)
                """, """
                select distinct j.task_id from {schema}._private_jobs j
                """),

        QUEUES(CleanupTask.GC_JOB_QUEUES, "{schema}._private_job_queues", """
                select q.id from {schema}._private_job_queues q where q.locked_at is null
                """, """
                select distinct j.job_queue_id from {schema}._private_jobs j where j.job_queue_id is not null
                """);

        private final CleanupTask task;
        private final String name;
        private final String idle;
        private final String used;

        Table(CleanupTask task, String name, String idle, String used) {
            this.task = task;
            this.name = name;
            this.idle = idle;
            this.used = used;
        }
    }

    /** Returns how many rows were deleted, or null if others kept the table busy. */
    private @Nullable Long deleteUnused(Connection connection, Table table) throws SQLException {
        for (int patience : PATIENCE) {
            if (Connections.inTransaction(connection, () -> unused(connection, table))
                    .isEmpty()) {
                return 0L;
            }
            try {
                return Connections.inTransaction(connection, () -> {
                    lock(connection, table, patience);
                    return delete(connection, table, unused(connection, table));
                });
            } catch (SQLException e) {
                if (QUERY_CANCELED.equals(e.getSQLState())) {
                    return null;
                }
                if (!LOCK_NOT_AVAILABLE.equals(e.getSQLState()) && !DEADLOCK.equals(e.getSQLState())) {
                    throw e;
                }
            }
            try {
                Thread.sleep(PAUSE.toMillis());
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return null;
            }
        }
        return null;
    }

    /** Every statement after the lock must see what was committed before it, hence the isolation level. */
    private void lock(Connection connection, Table table, int patience) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("set transaction isolation level read committed");
            statement.execute("set local lock_timeout = " + patience);
            statement.execute("set local statement_timeout = 1000");
            statement.execute(schema.in("lock table " + table.name + " in access exclusive mode"));
        }
    }

    private Set<Integer> unused(Connection connection, Table table) throws SQLException {
        Set<Integer> ids = ids(connection, table.idle);
        if (!ids.isEmpty()) {
            ids.removeAll(ids(connection, table.used));
        }
        return ids;
    }

    private Set<Integer> ids(Connection connection, String sql) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(sql));
                ResultSet rows = statement.executeQuery()) {
            Set<Integer> ids = new HashSet<>();
            while (rows.next()) {
                ids.add(rows.getInt(1));
            }
            return ids;
        }
    }

    private long delete(Connection connection, Table table, Set<Integer> ids) throws SQLException {
        String sql = schema.in("delete from " + table.name + " where id = any(?)");
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setArray(1, connection.createArrayOf("int4", ids.toArray()));
            return statement.executeLargeUpdate();
        }
    }
}
