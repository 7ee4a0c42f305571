package dev.pgworker.internal.client;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.ToIntFunction;
import java.util.stream.Collectors;
import javax.sql.DataSource;

import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.support.SqlArrayValue;
import tools.jackson.databind.JsonNode;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.store.JobRows;
import dev.pgworker.job.BulkProgress;
import dev.pgworker.job.BulkResult;
import dev.pgworker.job.Cancellation;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobChange;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobSelection;
import dev.pgworker.job.Rescheduling;
import dev.pgworker.schema.WorkerSchema;

/** Changes jobs by hand through the functions of the schema, which leave alone what runs. */
public final class JdbcJobChanges implements JobChanges {

    private final ClientConnections connections;
    private final WorkerSchema schema;
    private final JobCancels cancels;
    private final ChangeReport report;

    /**
     * Creates the changes of one schema.
     *
     * @param events where to report what has been changed; delivers by itself
     */
    public JdbcJobChanges(DataSource dataSource, WorkerSchema schema, WorkerEvents events) {
        this(new ClientConnections(dataSource), schema, new ChangeReport(events, null));
    }

    private JdbcJobChanges(ClientConnections connections, WorkerSchema schema, ChangeReport report) {
        this.connections = connections;
        this.schema = schema;
        this.cancels = new JobCancels(connections, schema);
        this.report = report;
    }

    @Override
    public JdbcJobChanges actingAs(String user) {
        return new JdbcJobChanges(connections, schema, report.of(Arguments.requireUser(user)));
    }

    @Override
    public List<Job> complete(Collection<Long> ids) {
        return change(new JobChange.Complete(), ids);
    }

    @Override
    public List<Job> permanentlyFail(Collection<Long> ids, String reason) {
        return change(new JobChange.Fail(reason), ids);
    }

    @Override
    public List<Job> reschedule(Collection<Long> ids, Rescheduling rescheduling) {
        return change(new JobChange.Reschedule(rescheduling), ids);
    }

    @Override
    public List<Job> runNow(Collection<Long> ids) {
        return change(new JobChange.RunNow(), ids);
    }

    @Override
    public List<Job> retryWith(Collection<Long> ids, JsonNode payload) {
        return change(new JobChange.RetryWith(payload), ids);
    }

    @Override
    public List<Job> remove(Collection<Long> ids) {
        return change(new JobChange.Remove(), ids);
    }

    @Override
    public List<Cancellation> cancel(Collection<Long> ids) {
        List<Cancellation> answers = cancels.cancel(ids, report.user());
        reportCancelled(answers);
        return answers;
    }

    @Override
    public Optional<Cancellation> cancel(String jobKey) {
        Optional<Cancellation> answer = cancels.cancel(jobKey, report.user());
        reportCancelled(answer.stream().toList());
        return answer;
    }

    private void reportCancelled(List<Cancellation> answers) {
        report.jobs(
                ChangeStatement.CANCEL,
                answers.stream()
                        .filter(answer -> answer.state() != Cancellation.State.GONE)
                        .map(Cancellation::jobId)
                        .toList());
    }

    @Override
    public List<Cancellation> awaitCancellations(Collection<Long> ids, Duration limit) {
        return cancels.await(ids, limit);
    }

    @Override
    public BulkResult change(JobSelection selection, JobChange change, BulkProgress progress) {
        return new BulkChange(connections, schema, report, change).run(selection, progress);
    }

    private List<Job> change(JobChange change, Collection<Long> ids) {
        List<Object> values = ChangeStatement.values(change, null);
        ChangeStatement statement = ChangeStatement.of(change);
        Set<Long> given = Arguments.requireElements("ids", ids);
        if (given.isEmpty()) {
            return List.of();
        }
        List<Job> jobs = connections.query(statement.task(), true, client -> {
            Map<Long, Job> changed = new HashMap<>();
            for (Job job : changed(client, statement.changingJobs(client, schema, given, values))) {
                changed.put(job.id(), job);
            }
            return given.stream().filter(changed::containsKey).map(changed::get).toList();
        });
        report.jobs(statement, jobs.stream().map(Job::id).toList());
        return jobs;
    }

    private static final String REMOVE =
            "select " + JobColumns.ALL + "j.task_id, j.job_queue_id, " + JobColumns.RECOVERIES + """
            from {schema}.remove_job(?) j where j.id is not null
            """;

    @Override
    public Optional<Job> remove(String jobKey) {
        Arguments.requireGivenJobKey(jobKey);
        Optional<Job> removed = connections.query(
                "remove the job with key \"" + jobKey + "\"",
                true,
                client -> changed(client, client.sql(schema.in(REMOVE)).param(jobKey)).stream()
                        .findFirst());
        report.jobs(ChangeStatement.REMOVE, removed.stream().map(Job::id).toList());
        return removed;
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
}
