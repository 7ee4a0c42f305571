package dev.pgworker.internal.client;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.ToIntFunction;
import java.util.stream.Collectors;

import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.support.SqlArrayValue;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.store.JobRows;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobChange;
import dev.pgworker.schema.WorkerSchema;

/** Changes jobs by hand through the functions of the schema, which leave alone what runs. */
final class JobChanges {

    private final ClientConnections connections;
    private final WorkerSchema schema;

    JobChanges(ClientConnections connections, WorkerSchema schema) {
        this.connections = connections;
        this.schema = schema;
    }

    /** Changes jobs in the caller's transaction and returns them in the order of the ids. */
    List<Job> change(JobChange change, Collection<Long> ids) {
        List<Object> values = ChangeStatement.values(change, null);
        ChangeStatement statement = ChangeStatement.of(change);
        Set<Long> given = Arguments.requireElements("ids", ids);
        if (given.isEmpty()) {
            return List.of();
        }
        return connections.query(statement.task(), true, client -> {
            Map<Long, Job> changed = new HashMap<>();
            for (Job job : changed(client, statement.changingJobs(client, schema, given, values))) {
                changed.put(job.id(), job);
            }
            return given.stream().filter(changed::containsKey).map(changed::get).toList();
        });
    }

    /**
     * Changes jobs in a transaction of its own, whatever becomes of the caller's, and returns the ids of those that were changed,
     * without a look at their payloads.
     *
     * @param user in whose name; null if that was not said
     * @param note what the message of an exception says beside what is done
     */
    List<Long> changeApart(JobChange change, @Nullable String user, Collection<Long> ids, String note) {
        ChangeStatement statement = ChangeStatement.of(change);
        List<Object> values = ChangeStatement.values(change, user);
        return connections.apart(
                statement.task() + note,
                transactions -> transactions.run(client -> statement
                        .changing(client, schema, ids, values)
                        .query(Long.class)
                        .list()));
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

    /** Returns the ids, without repetitions. */
    Set<String> forceUnlockWorkers(Collection<String> workerIds) {
        Set<String> given = Arguments.requireElements("workerIds", workerIds);
        given.forEach(id -> Arguments.requireGivenText("workerIds", id));
        if (given.isEmpty()) {
            return given;
        }
        boolean unused = connections.query(
                "unlock the jobs of workers",
                false,
                client -> client.sql(schema.in(FORCE_UNLOCK))
                        .param(new SqlArrayValue("text", given.toArray()))
                        .query((row, number) -> true)
                        .single());
        return given;
    }
}
