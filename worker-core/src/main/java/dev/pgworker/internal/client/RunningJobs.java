package dev.pgworker.internal.client;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.util.List;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.internal.store.JobRows;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobProgress;
import dev.pgworker.job.RunningJob;
import dev.pgworker.schema.WorkerSchema;

/** The jobs that workers report as running, as far as they hold them. */
final class RunningJobs {

    private final ClientConnections connections;
    private final WorkerSchema schema;

    RunningJobs(ClientConnections connections, WorkerSchema schema) {
        this.connections = connections;
        this.schema = schema;
    }

    // Each row looks for its job, whatever the planner believes about the size of either table.
    // Payloads are not read: a role that only looks may lack that privilege, and they may be large.
    private static final String RUNNING = "select " + JobColumns.limiting(0, false)
            + "coalesce(t.identifier, pg_catalog.concat('task ', j.task_id)), q.queue_name, " + JobColumns.RECOVERIES
            + """
            , r.started_at, r.done, r.total, r.text, r.updated_at
            from (select * from {schema}.pgworker_running order by started_at, job_id) r
            cross join lateral (
              select h.id, h.task_id, h.job_queue_id, h.priority, h.run_at, h.attempts, h.max_attempts, h.last_error,
                h.created_at, h.updated_at, h.key, h.locked_at, h.locked_by, h.revision, h.flags
              from {schema}._private_jobs h
              where h.id = r.job_id and h.locked_by = r.worker_id and h.locked_at = r.locked_at offset 0) j
            left join {schema}._private_tasks t on t.id = j.task_id
            left join {schema}._private_job_queues q on q.id = j.job_queue_id
            order by r.started_at, r.job_id limit ?
            """;

    List<RunningJob> list(int limit) {
        Arguments.requireRange("limit", limit, 1, 1000);
        return connections.query(
                "list the running jobs",
                false,
                client -> client.sql(schema.in(RUNNING))
                        .param(limit)
                        .query(RunningJobs::runningJob)
                        .list());
    }

    private static RunningJob runningJob(ResultSet row, int number) throws SQLException {
        Job job = JobRows.addedJob(row, row.getString(15), row.getString(16)).withRecoveries(row.getInt(17));
        long done = row.getLong(19);
        boolean reported = !row.wasNull();
        Instant reportedAt = Timestamps.nullableInstant(row, 22);
        JobProgress progress = reported && reportedAt != null
                ? new JobProgress(done, row.getLong(20), row.getString(21), reportedAt)
                : null;
        return new RunningJob(job, Timestamps.instant(row, 18), progress);
    }
}
