package dev.pgworker.internal.client;

import java.sql.Array;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.job.CleanupPreview;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.schema.WorkerSchema;

/** What a clean-up would delete, found by reading a bounded number of rows and locking none. */
final class CleanupEstimate {

    private static final int LIMIT = 10_000;

    /** Of the oldest and of the newest jobs so many are asked for what they use. */
    private static final int SAMPLE = 20_000;

    private final ClientConnections connections;
    private final WorkerSchema schema;

    CleanupEstimate(ClientConnections connections, WorkerSchema schema) {
        this.connections = connections;
        this.schema = schema;
    }

    CleanupPreview of(Set<CleanupTask> tasks) {
        return connections.query("look what a clean-up would delete", false, client -> {
            Map<CleanupTask, Long> counts = new EnumMap<>(CleanupTask.class);
            Set<CleanupTask> atMost = EnumSet.noneOf(CleanupTask.class);
            if (tasks.contains(CleanupTask.DELETE_ENDED_SCHEDULES)) {
                counts.put(
                        CleanupTask.DELETE_ENDED_SCHEDULES,
                        client.sql(schema.in(ENDED)).query(Long.class).single());
            }
            boolean failedStay = !tasks.contains(CleanupTask.DELETE_PERMAFAILED_JOBS);
            if (!failedStay) {
                counts.put(
                        CleanupTask.DELETE_PERMAFAILED_JOBS,
                        client.sql(schema.in(FAILED)).query(Long.class).single());
            }
            if (tasks.contains(CleanupTask.GC_JOB_QUEUES)) {
                note(CleanupTask.GC_JOB_QUEUES, unused(client, Table.QUEUES, failedStay), counts, atMost);
            }
            if (tasks.contains(CleanupTask.GC_TASK_IDENTIFIERS)) {
                note(CleanupTask.GC_TASK_IDENTIFIERS, unused(client, Table.TASKS, failedStay), counts, atMost);
            }
            return new CleanupPreview(counts, LIMIT, atMost);
        });
    }

    private static void note(CleanupTask task, Unused unused, Map<CleanupTask, Long> counts, Set<CleanupTask> atMost) {
        counts.put(task, Math.min(LIMIT, unused.rows));
        if (!unused.exact && unused.rows > 0) {
            atMost.add(task);
        }
    }

    private static final String ENDED = """
            select pg_catalog.count(*) from (
              select from {schema}.pgworker_schedules s
              where s.ends_at <= pg_catalog.clock_timestamp() and s.next_at is null and not s.awaits_end and not s.declared
              limit\s""" + LIMIT + ") e";

    private static final String FAILED = """
            select pg_catalog.count(*) from (
              select from {schema}._private_jobs j where not j.is_available and j.locked_at is null limit\s""" + LIMIT + ") f";

    /** A table whose rows jobs refer to. */
    private enum Table {
        /** A queue whose jobs run is locked, so that only failed jobs are to be asked. A scalar query, so that the planner looks at one queue after the other. */
        QUEUES("job_queue_id", "where not j.is_available and j.locked_at is null", """
                select q.id from (
                      select q.id from {schema}._private_job_queues q where q.locked_at is null order by q.id limit 50000) q
                where (select 1 from {schema}._private_jobs j where j.job_queue_id = q.id and j.is_available limit 1) is null
                """),

        TASKS("task_id", "", """
                select t.id from {schema}._private_tasks t
                where t.identifier not in (
                  select served.identifier
                  from {schema}._private_workers w
                  cross join lateral pg_catalog.jsonb_array_elements_text(
                    case when pg_catalog.jsonb_typeof(w.metadata -> 'tasks'::pg_catalog.text) = 'array'
                      then w.metadata -> 'tasks'::pg_catalog.text else '[]' end
                  ) served(identifier)
                  where w.last_heartbeat_at > pg_catalog.now() - interval '1 hour' and served.identifier is not null)
                order by t.id limit 50000
                """);

        private final String column;
        private final String which;
        private final String idle;

        Table(String column, String which, String idle) {
            this.column = column;
            this.which = which;
            this.idle = idle;
        }
    }

    private static final String USED = """
            select pg_catalog.count(*), pg_catalog.array_agg(distinct x.used) filter (where {stay} or x.is_available or x.locked_at is not null)
            from (
              select j.{column} as used, j.is_available, j.locked_at from {schema}._private_jobs j
              {which} order by j.id {order} limit {sample}) x
            """;

    /** How many rows no job uses that was asked, and whether all were asked that could use one. */
    private record Unused(long rows, boolean exact) {}

    private Unused unused(JdbcClient client, Table table, boolean failedStay) {
        Set<Integer> ids = new HashSet<>(
                client.sql(schema.in(table.idle)).query(Integer.class).list());
        for (String order : List.of("desc", "asc")) {
            if (ids.isEmpty() || removeUsed(client, table, order, failedStay, ids)) {
                return new Unused(ids.size(), true);
            }
        }
        return new Unused(ids.size(), false);
    }

    /** Returns whether there were no other jobs to ask. */
    private boolean removeUsed(JdbcClient client, Table table, String order, boolean failedStay, Set<Integer> ids) {
        String sql = USED.replace("{column}", table.column)
                .replace("{which}", table.which)
                .replace("{order}", order)
                .replace("{sample}", String.valueOf(SAMPLE))
                .replace("{stay}", String.valueOf(failedStay));
        return client.sql(schema.in(sql))
                .query((row, number) -> {
                    Array used = row.getArray(2);
                    if (used != null) {
                        for (Object id : (Object[]) used.getArray()) {
                            ids.remove(id);
                        }
                    }
                    return row.getLong(1) < SAMPLE;
                })
                .single();
    }
}
