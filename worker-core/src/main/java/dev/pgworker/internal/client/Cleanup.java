package dev.pgworker.internal.client;

import java.sql.SQLException;
import java.time.Duration;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiFunction;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.support.SqlArrayValue;

import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.jdbc.OwnTransactions;
import dev.pgworker.job.CleanupResult;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.schema.WorkerSchema;

/**
 * Removes unused tasks and queues, and jobs that have failed permanently, in transactions of its own.
 *
 * <p>{@code add_job} looks up the id of a task or queue without locking the row, so a row that no job uses may be about
 * to get one. But a session that has looked an id up holds an ACCESS SHARE lock on the table until the transaction
 * ends. Once this class holds the ACCESS EXCLUSIVE lock, no such transaction is left, and what no job uses then stays
 * unused: later adders wait, and look the name up after the row is gone. Waiting for the lock makes all others wait
 * behind it, so each try is short.
 */
final class Cleanup {

    private static final String LOCK_NOT_AVAILABLE = "55P03";
    private static final String DEADLOCK = "40P01";
    private static final String QUERY_CANCELED = "57014";

    /** How long each try waits for the lock, in milliseconds. */
    private static final List<Integer> PATIENCE = List.of(20, 50, 100, 200, 200);

    private static final Duration PAUSE = Duration.ofMillis(50);

    /** Stands for no limit. */
    static final Duration UNTIL_DONE = Duration.ofDays(3_650);

    private static final Logger log = WorkerLog.of(Cleanup.class);

    private final ClientConnections connections;
    private final WorkerSchema schema;

    Cleanup(ClientConnections connections, WorkerSchema schema) {
        this.connections = connections;
        this.schema = schema;
    }

    /**
     * Cleans up.
     *
     * @param limit after which no more chunks of jobs and schedules are deleted
     */
    CleanupResult run(Set<CleanupTask> tasks, Duration failedJobsOlderThan, Duration limit) {
        return tasks.isEmpty()
                ? new CleanupResult(Map.of(), Set.of())
                : connections.apart("clean up", transactions -> run(tasks, failedJobsOlderThan, limit, transactions));
    }

    /** Failed jobs go first: they are the last users of some queues and tasks. */
    private CleanupResult run(
            Set<CleanupTask> tasks, Duration failedJobsOlderThan, Duration limit, OwnTransactions transactions) {
        Chunks chunks = new Chunks(transactions, limit);
        Map<CleanupTask, Long> deleted = new EnumMap<>(CleanupTask.class);
        Set<CleanupTask> skipped = EnumSet.noneOf(CleanupTask.class);
        if (tasks.contains(CleanupTask.DELETE_PERMAFAILED_JOBS)) {
            endCancelled(transactions);
            deleted.put(CleanupTask.DELETE_PERMAFAILED_JOBS, deleteFailedJobs(failedJobsOlderThan, chunks));
            sweepUp(transactions);
        }
        if (tasks.contains(CleanupTask.DELETE_ENDED_SCHEDULES)) {
            deleted.put(CleanupTask.DELETE_ENDED_SCHEDULES, deleteEndedSchedules(chunks));
        }
        for (Table table : Table.values()) {
            if (tasks.contains(table.task)) {
                Long rows = deleteUnused(transactions, table);
                if (rows == null) {
                    skipped.add(table.task);
                } else {
                    deleted.put(table.task, rows);
                }
            }
        }
        return new CleanupResult(deleted, skipped);
    }

    private static final String DELETE_FAILED = """
            with chunk as materialized (
              select j.id from {schema}._private_jobs j
              where j.id > ? and j.attempts >= j.max_attempts and j.locked_at is null
                and j.updated_at <= pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => ?)
              order by j.id limit 5000 for update skip locked),
            gone as (delete from {schema}._private_jobs j using chunk c where j.id = c.id)
            select pg_catalog.count(*), pg_catalog.max(id) from chunk
            """;

    private long deleteFailedJobs(Duration olderThan, Chunks chunks) {
        return chunks.delete(
                0L,
                (client, after) -> client.sql(schema.in(DELETE_FAILED))
                        .param(after)
                        .param((double) olderThan.toSeconds())
                        .query((row, number) -> new Chunk<>(row.getLong(1), row.getLong(2)))
                        .single());
    }

    // What a session is changing may no longer have ended.
    private static final String DELETE_ENDED = """
            with chunk as materialized (
              select s.name from {schema}.pgworker_schedules s
              where s.name operator(pg_catalog.>) ? and s.ends_at <= pg_catalog.clock_timestamp() and s.next_at is null
                and not s.awaits_end and not s.declared
              order by s.name limit 5000 for update skip locked),
            gone as (
              delete from {schema}.pgworker_schedules s using chunk c where s.name operator(pg_catalog.=) c.name)
            select pg_catalog.count(*), coalesce(pg_catalog.max(name), '') from chunk
            """;

    private long deleteEndedSchedules(Chunks chunks) {
        return chunks.delete(
                "",
                (client, after) -> client.sql(schema.in(DELETE_ENDED))
                        .param(after)
                        .query((row, number) -> new Chunk<>(row.getLong(1), row.getString(2)))
                        .single());
    }

    /** How many rows a chunk had, and the largest of their keys. */
    private record Chunk<K>(long rows, K last) {}

    /** Deletes rows chunk by chunk, each in a transaction, until there are no more, the time is over or the thread is interrupted. */
    private static final class Chunks {

        private final OwnTransactions transactions;
        private final Duration limit;
        private final long begin = System.nanoTime();

        Chunks(OwnTransactions transactions, Duration limit) {
            this.transactions = transactions;
            this.limit = limit;
        }

        /** Each chunk starts where the one before ended, so the table is read once. */
        <K> long delete(K first, BiFunction<JdbcClient, K, Chunk<K>> step) {
            long total = 0;
            K last = first;
            while (true) {
                K after = last;
                Chunk<K> chunk = transactions.run(client -> step.apply(client, after));
                total += chunk.rows;
                last = chunk.last;
                if (chunk.rows == 0 || Thread.currentThread().isInterrupted()) {
                    return total;
                }
                if (System.nanoTime() - begin > limit.toNanos()) {
                    log.info(
                            "The clean-up ends after {}: the next one continues with the rest, if there is any", limit);
                    return total;
                }
            }
        }
    }

    private static final String END_CANCELLED = """
            select {schema}.pgworker_tend_cancellations()
            """;

    /** Those that another worker has left as failed count as cancelled, not as completed, however they go. */
    private void endCancelled(OwnTransactions transactions) {
        transactions.run(client -> client.sql(schema.in(END_CANCELLED))
                .query((row, number) -> true)
                .single());
    }

    private static final String SWEEP_UP = """
            select {schema}.pgworker_sweep_up()
            """;

    private void sweepUp(OwnTransactions transactions) {
        transactions.run(client ->
                client.sql(schema.in(SWEEP_UP)).query((row, number) -> true).single());
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
    private @Nullable Long deleteUnused(OwnTransactions transactions, Table table) {
        for (int patience : PATIENCE) {
            if (transactions.run(client -> unused(client, table)).isEmpty()) {
                return 0L;
            }
            try {
                return transactions.run(client -> {
                    lock(client, table, patience);
                    return delete(client, table, unused(client, table));
                });
            } catch (DataAccessException e) {
                String state = sqlState(e);
                if (state.equals(QUERY_CANCELED)) {
                    return null;
                }
                if (!state.equals(LOCK_NOT_AVAILABLE) && !state.equals(DEADLOCK)) {
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

    private static String sqlState(DataAccessException e) {
        return e.getCause() instanceof SQLException answer ? String.valueOf(answer.getSQLState()) : "";
    }

    /** Every statement after the lock must see what was committed before it, hence the isolation level. */
    private void lock(JdbcClient client, Table table, int patience) {
        client.sql("set transaction isolation level read committed").update();
        client.sql("set local lock_timeout = " + patience).update();
        client.sql("set local statement_timeout = 1000").update();
        client.sql(schema.in("lock table " + table.name + " in access exclusive mode"))
                .update();
    }

    private Set<Integer> unused(JdbcClient client, Table table) {
        Set<Integer> ids = ids(client, table.idle);
        if (!ids.isEmpty()) {
            ids.removeAll(ids(client, table.used));
        }
        return ids;
    }

    private Set<Integer> ids(JdbcClient client, String sql) {
        return new HashSet<>(client.sql(schema.in(sql)).query(Integer.class).list());
    }

    private long delete(JdbcClient client, Table table, Set<Integer> ids) {
        return client.sql(schema.in("delete from " + table.name + " where id = any(?)"))
                .param(new SqlArrayValue("int4", ids.toArray()))
                .update();
    }
}
