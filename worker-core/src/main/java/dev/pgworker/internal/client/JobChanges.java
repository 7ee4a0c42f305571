package dev.pgworker.internal.client;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.ToIntFunction;
import java.util.stream.Collectors;

import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.support.SqlArrayValue;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.internal.store.JobRows;
import dev.pgworker.job.Job;
import dev.pgworker.job.Rescheduling;
import dev.pgworker.schema.WorkerSchema;

/** Changes jobs by hand through the functions of the schema, which leave alone what runs. */
final class JobChanges {

    private final ClientConnections connections;
    private final WorkerSchema schema;

    JobChanges(ClientConnections connections, WorkerSchema schema) {
        this.connections = connections;
        this.schema = schema;
    }

    private static final String COMPLETE =
            "select " + JobColumns.ALL + "j.task_id, j.job_queue_id, " + JobColumns.RECOVERIES + """
            from {schema}.complete_jobs(?) j
            """;

    List<Job> complete(Collection<Long> ids) {
        return change(
                "complete jobs",
                ids,
                (client, given) -> client.sql(schema.in(COMPLETE)).param(given));
    }

    private static final String FAIL =
            "select " + JobColumns.ALL + "j.task_id, j.job_queue_id, " + JobColumns.RECOVERIES + """
            from {schema}.permanently_fail_jobs(?, ?) j
            """;

    List<Job> permanentlyFail(Collection<Long> ids, String reason) {
        Arguments.requireGivenText("reason", reason);
        return change(
                "fail jobs permanently",
                ids,
                (client, given) -> client.sql(schema.in(FAIL)).param(given).param(reason));
    }

    /** Given attempts end the count, which the statement still sees. */
    private static final String RESCHEDULE = "select " + JobColumns.ALL
            + "j.task_id, j.job_queue_id, case when given.attempts is null then " + JobColumns.RECOVERIES + """
            end
            from (select ?::bigint[], ?::pg_catalog.timestamptz, ?::int, ?::int, ?::int) given(ids, run_at, priority, attempts, max_attempts)
            cross join lateral {schema}.reschedule_jobs(
              given.ids, given.run_at, given.priority, given.attempts, given.max_attempts) j
            """;

    List<Job> reschedule(Collection<Long> ids, Rescheduling rescheduling) {
        Arguments.requireNonNull("rescheduling", rescheduling);
        return change(
                "reschedule jobs",
                ids,
                (client, given) -> client.sql(schema.in(RESCHEDULE))
                        .param(1, given)
                        .param(2, Timestamps.offset(rescheduling.runAt()), Types.TIMESTAMP_WITH_TIMEZONE)
                        .param(3, rescheduling.priority(), Types.INTEGER)
                        .param(4, rescheduling.attempts(), Types.INTEGER)
                        .param(5, rescheduling.maxAttempts(), Types.INTEGER));
    }

    /** Locks the jobs before it looks which of them have failed, so that none fails in between. */
    private static final String RUN_NOW = """
            with due as materialized (
              select j.id, j.attempts >= j.max_attempts as failed
              from {schema}._private_jobs j
              where j.id = any(?::bigint[]) and not {schema}.pgworker_locked(j.locked_at, j.locked_by)
              order by j.id for update)
            """ + "select " + JobColumns.ALL
            + "j.task_id, j.job_queue_id, case when given.attempts is null then " + JobColumns.RECOVERIES + """
            end
            from (
              select pg_catalog.array_agg(due.id) as ids, case when due.failed then 0 end as attempts
              from due group by due.failed) given
            cross join lateral {schema}.reschedule_jobs(given.ids, run_at => pg_catalog.now(), attempts => given.attempts) j
            """;

    List<Job> runNow(Collection<Long> ids) {
        return change(
                "make jobs due",
                ids,
                (client, given) -> client.sql(schema.in(RUN_NOW)).param(given));
    }

    /** Makes a statement whose first parameter are the ids. */
    @FunctionalInterface
    private interface Change {
        JdbcClient.StatementSpec of(JdbcClient client, SqlArrayValue ids);
    }

    /** Returns the changed jobs in the order of the ids. */
    private List<Job> change(String task, Collection<Long> ids, Change change) {
        Set<Long> given = Arguments.requireElements("ids", ids);
        if (given.isEmpty()) {
            return List.of();
        }
        return connections.query(task, true, client -> {
            Map<Long, Job> changed = new HashMap<>();
            for (Job job : changed(client, change.of(client, new SqlArrayValue("int8", given.toArray())))) {
                changed.put(job.id(), job);
            }
            return given.stream().filter(changed::containsKey).map(changed::get).toList();
        });
    }

    private static final String REMOVE =
            "select " + JobColumns.ALL + "j.task_id, j.job_queue_id, " + JobColumns.RECOVERIES + """
            from {schema}.remove_job(?) j where j.id is not null
            """;

    Optional<Job> remove(String jobKey) {
        Arguments.requireGivenJobKey(jobKey);
        return connections.query(
                "remove the job with key \"" + jobKey + "\"",
                true,
                client -> changed(client, client.sql(schema.in(REMOVE)).param(jobKey)).stream()
                        .findFirst());
    }

    /** A changed job without the names of its task and queue; the queue's id is 0 for none. */
    private record Changed(Job job, int taskId, int queueId) {

        static Changed of(ResultSet row, int number) throws SQLException {
            Job job = JobRows.addedJob(row, "", null).withRecoveries(row.getInt(17));
            return new Changed(job, row.getInt(15), row.getInt(16));
        }
    }

    private static final String TASK_NAMES = """
            select id, identifier from {schema}._private_tasks where id = any(?)
            """;

    private static final String QUEUE_NAMES = """
            select id, queue_name from {schema}._private_job_queues where id = any(?)
            """;

    /**
     * Names are read afterwards: the function may have waited for a transaction that gave a job a new task or queue,
     * which its own statement does not see.
     */
    private List<Job> changed(JdbcClient client, JdbcClient.StatementSpec change) {
        List<Changed> changed = change.query(Changed::of).list();
        if (changed.isEmpty()) {
            return List.of();
        }
        Map<Integer, String> tasks = names(client, TASK_NAMES, changed, Changed::taskId);
        Map<Integer, String> queues = names(client, QUEUE_NAMES, changed, Changed::queueId);
        return changed.stream()
                .map(one -> JobRows.named(
                        one.job, tasks.getOrDefault(one.taskId, "task " + one.taskId), queues.get(one.queueId)))
                .toList();
    }

    private Map<Integer, String> names(
            JdbcClient client, String sql, List<Changed> changed, ToIntFunction<Changed> id) {
        Set<Integer> ids = changed.stream().map(id::applyAsInt).collect(Collectors.toSet());
        Map<Integer, String> names = new HashMap<>();
        client.sql(schema.in(sql))
                .param(new SqlArrayValue("int4", ids.toArray()))
                .query(row -> {
                    names.put(row.getInt(1), row.getString(2));
                });
        return names;
    }

    private static final String FORCE_UNLOCK = """
            select {schema}.force_unlock_workers(?)
            """;

    void forceUnlockWorkers(Collection<String> workerIds) {
        Set<String> given = Arguments.requireElements("workerIds", workerIds);
        given.forEach(id -> Arguments.requireGivenText("workerIds", id));
        if (given.isEmpty()) {
            return;
        }
        boolean unused = connections.query(
                "unlock the jobs of workers",
                false,
                client -> client.sql(schema.in(FORCE_UNLOCK))
                        .param(new SqlArrayValue("text", given.toArray()))
                        .query((row, number) -> true)
                        .single());
    }
}
