package dev.pgworker.internal.client;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.util.List;
import java.util.Optional;

import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.internal.store.StepStore;
import dev.pgworker.job.JobWait;
import dev.pgworker.job.JobWait.Reason;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.step.JobStep;
import dev.pgworker.step.JobStep.Kind;

/** Lists the steps of a job, with the one at which it waits. */
final class JobStepList {

    private final ClientConnections connections;
    private final WorkerSchema schema;

    JobStepList(ClientConnections connections, WorkerSchema schema) {
        this.connections = connections;
        this.schema = schema;
    }

    private static final String STEPS = """
            select s.name, s.kind, s.attempt, s.claim, s.started_at, s.ended_at, s.due_at, s.timed_out, s.result_type, {result}
            from {schema}.pgworker_steps s
            where s.job_id = ? and s.revision = coalesce(
              (select j.revision from {schema}._private_jobs j where j.id = s.job_id),
              (select pg_catalog.max(o.revision) from {schema}.pgworker_steps o where o.job_id = s.job_id))
            order by s.started_at, s.name
            """;

    List<JobStep> of(long id, boolean results) {
        return connections.query(
                "list the steps of job " + id,
                false,
                client -> client.sql(
                                schema.in(STEPS.replace("{result}", results ? "s.result" : "null::pg_catalog.text")))
                        .param(id)
                        .query(JobStepList::step)
                        .list());
    }

    private static JobStep step(ResultSet row, int number) throws SQLException {
        return new JobStep(
                row.getString(1),
                StepStore.kind(row.getString(2)),
                row.getInt(3),
                Timestamps.instant(row, 4),
                Timestamps.instant(row, 5),
                Timestamps.nullableInstant(row, 6),
                Timestamps.nullableInstant(row, 7),
                row.getBoolean(8),
                row.getString(9),
                row.getString(10));
    }

    private static final String WAITING = """
            select s.name, s.kind, s.due_at, s.signal
            from {schema}._private_jobs j
            join {schema}.pgworker_steps s on s.job_id = j.id and s.revision = j.revision
            where j.id = ? and s.ended_at is null and s.due_at = j.run_at
            """;

    /** Returns for what a job waits that is not due; empty if none of its steps waits until it is. */
    static Optional<JobWait> wait(JdbcClient client, WorkerSchema schema, long id) {
        return client.sql(schema.in(WAITING))
                .param(id)
                .query((row, number) -> {
                    Instant until = Timestamps.instant(row, 3);
                    return StepStore.kind(row.getString(2)) == Kind.WAIT
                            ? new JobWait(Reason.SIGNAL, until, null, "Waits for signal \"" + row.getString(4) + "\".")
                            : new JobWait(Reason.SLEEP, until, null, "Sleeps in step \"" + row.getString(1) + "\".");
                })
                .optional();
    }
}
