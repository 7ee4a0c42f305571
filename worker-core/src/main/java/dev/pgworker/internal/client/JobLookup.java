package dev.pgworker.internal.client;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;
import java.util.Optional;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.store.JobRows;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobCounts;
import dev.pgworker.job.JobPage;
import dev.pgworker.job.JobQuery;
import dev.pgworker.schema.WorkerSchema;

/** Finds, lists and counts jobs. */
final class JobLookup {

    private final ClientConnections connections;
    private final WorkerSchema schema;

    JobLookup(ClientConnections connections, WorkerSchema schema) {
        this.connections = connections;
        this.schema = schema;
    }

    private static final String NAMED = "select " + JobColumns.ALL
            + "coalesce(t.identifier, pg_catalog.concat('task ', j.task_id)), q.queue_name, " + JobColumns.RECOVERIES
            + """
            from page j
            left join {schema}._private_tasks t on t.id = j.task_id
            left join {schema}._private_job_queues q on q.id = j.job_queue_id
            order by j.id desc
            """;

    private static Job named(ResultSet row, int number) throws SQLException {
        return JobRows.addedJob(row, row.getString(15), row.getString(16)).withRecoveries(row.getInt(17));
    }

    private static final String FIND = """
            with page as (select * from {schema}._private_jobs where id = ?)
            """ + NAMED;

    Optional<Job> find(long id) {
        return connections.query(
                "find job " + id,
                false,
                client -> client.sql(schema.in(FIND))
                        .param(id)
                        .query(JobLookup::named)
                        .optional());
    }

    JobPage list(JobQuery query) {
        Arguments.requireNonNull("query", query);
        JobFilters filters = new JobFilters(query);
        if (query.after() != null) {
            filters.add("j.id < ?", query.after());
        }
        String sql = "with page as materialized (select j.* from {schema}._private_jobs j where " + filters
                + " order by j.id desc limit " + (query.pageSize() + 1) + ") " + NAMED;
        List<Job> jobs = connections.query(
                "list jobs",
                false,
                client -> client.sql(schema.in(sql))
                        .params(filters.values())
                        .query(JobLookup::named)
                        .list());
        if (jobs.size() <= query.pageSize()) {
            return new JobPage(jobs, null, false);
        }
        List<Job> page = jobs.subList(0, query.pageSize());
        return new JobPage(page, page.get(page.size() - 1).id(), false);
    }

    private static final String COUNT = """
            select
              pg_catalog.count(*) filter (where j.is_available and j.run_at <= pg_catalog.now()),
              pg_catalog.count(*) filter (where j.is_available and j.run_at > pg_catalog.now() and j.attempts = 0),
              pg_catalog.count(*) filter (where j.is_available and j.run_at > pg_catalog.now() and j.attempts > 0),
              pg_catalog.count(*) filter (where j.locked_at is not null),
              pg_catalog.count(*) filter (where j.locked_at is null and not j.is_available)
            from {schema}._private_jobs j where\s""";

    JobCounts count(JobQuery filter) {
        Arguments.requireNonNull("filter", filter);
        JobFilters filters = new JobFilters(filter);
        return connections.query(
                "count jobs",
                false,
                client -> client.sql(schema.in(COUNT + filters))
                        .params(filters.values())
                        .query((row, number) -> new JobCounts(
                                row.getLong(1), row.getLong(2), row.getLong(3), row.getLong(4), row.getLong(5)))
                        .single());
    }
}
