package dev.pgworker.internal.client;

import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.core.RowMapper;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.support.SqlArrayValue;

import dev.pgworker.history.JobHistory;
import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.store.JobRows;
import dev.pgworker.internal.store.PauseStore;
import dev.pgworker.internal.store.SweepStore;
import dev.pgworker.job.ActiveWorker;
import dev.pgworker.job.Cancellation;
import dev.pgworker.job.CleanupPreview;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobBacklog;
import dev.pgworker.job.JobCounts;
import dev.pgworker.job.JobPage;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobSelection;
import dev.pgworker.job.JobSort;
import dev.pgworker.job.JobState;
import dev.pgworker.job.JobWait;
import dev.pgworker.job.NamedQueue;
import dev.pgworker.job.Pause;
import dev.pgworker.job.RunningJob;
import dev.pgworker.job.TaskSummary;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.statistics.JobStatistics;
import dev.pgworker.step.JobStep;

/** Finds, lists, selects and counts jobs; others know the rest that can be read. */
public final class JdbcJobQueries implements JobQueries {

    private final ClientConnections connections;
    private final WorkerSchema schema;
    private final SweepStore.Request usualSweep;
    private final SchemaOverview overview;
    private final JobStatistics statistics;
    private final JobHistory history;

    /**
     * Creates what reads one schema.
     *
     * @param usualSweep whose thresholds decide which workers are stale
     */
    public JdbcJobQueries(DataSource dataSource, WorkerSchema schema, SweepStore.Request usualSweep) {
        this.connections = new ClientConnections(dataSource);
        this.schema = schema;
        this.usualSweep = usualSweep;
        this.overview = new SchemaOverview(connections, schema);
        this.statistics = new JdbcJobStatistics(connections, schema);
        this.history = new JdbcJobHistory(connections, schema);
    }

    private static final String NAMES = "coalesce(t.identifier, pg_catalog.concat('task ', j.task_id)), q.queue_name, "
            + JobColumns.RECOVERIES
            + """
            from page p
            join {schema}._private_jobs j on j.id = p.id
            left join {schema}._private_tasks t on t.id = j.task_id
            left join {schema}._private_job_queues q on q.id = j.job_queue_id
            """;

    private static RowMapper<Job> named(@Nullable Integer payloadLimit) {
        return (row, number) -> JobRows.addedJob(row, row.getString(15), row.getString(16))
                .withRecoveries(row.getInt(17))
                .withPayload(JobColumns.cut(row.getString(2), payloadLimit));
    }

    private static final String FIND = "with page as (select ?::bigint as id) select " + JobColumns.ALL + NAMES;

    @Override
    public Optional<Job> find(long id) {
        return connections.query(
                "find job " + id,
                false,
                client ->
                        client.sql(schema.in(FIND)).param(id).query(named(null)).optional());
    }

    @Override
    public List<Job> find(Collection<Long> ids, int payloadLimit) {
        Set<Long> given = Arguments.requireElements("ids", ids);
        Arguments.requireRange("payloadLimit", payloadLimit, 0, 1_000_000);
        if (given.isEmpty()) {
            return List.of();
        }
        String sql = "with page as (select pg_catalog.unnest(?) as id) select "
                + JobColumns.limiting(payloadLimit, given.size() == 1) + NAMES;
        Map<Long, Job> found = connections
                .query(
                        "find jobs",
                        false,
                        client -> client.sql(schema.in(sql))
                                .param(new SqlArrayValue("int8", given.toArray()))
                                .query(named(payloadLimit))
                                .list())
                .stream()
                .collect(Collectors.toMap(Job::id, Function.identity()));
        return given.stream().map(found::get).filter(Objects::nonNull).toList();
    }

    @Override
    public JobPage list(JobQuery query) {
        Arguments.requireNonNull("query", query);
        return connections.query("list jobs", false, client -> list(client, query));
    }

    private JobPage list(JdbcClient client, JobQuery query) {
        JobScan.Reach reach = JobScan.of(client, schema, query);
        boolean byId = JobScan.isById(query.sort());
        long before = byId || query.after() == null ? 0 : query.after();
        String order = " order by " + order(query.sort());
        String sql = "with page as materialized (" + reach.select("j.id", query) + order + " limit "
                + (query.pageSize() + 1) + " offset " + before + ") select "
                + JobColumns.limiting(query.payloadLimit(), false) + NAMES + order;
        List<Job> jobs = client.sql(schema.in(sql))
                .params(reach.values(query))
                .query(named(query.payloadLimit()))
                .list();
        boolean more = jobs.size() > query.pageSize();
        List<Job> page = more ? jobs.subList(0, query.pageSize()) : jobs;
        if (!byId) {
            return new JobPage(page, more ? before + page.size() : null, !reach.complete());
        }
        // What no later page has is missing even from a full one.
        boolean limited = !reach.complete() && (!more || reach.last() == null);
        Long next = more ? Long.valueOf(page.get(page.size() - 1).id()) : reach.last();
        return new JobPage(page, next, limited);
    }

    private static String order(JobSort sort) {
        return switch (sort) {
            case NEWEST -> "j.id desc";
            case OLDEST -> "j.id";
            case RUN_AT -> "j.run_at, j.id";
            case UPDATED -> "j.updated_at desc, j.id desc";
            case PRIORITY -> "j.priority, j.run_at, j.id";
            case ATTEMPTS -> "j.attempts desc, j.id desc";
        };
    }

    private static final String COUNT = Stream.of(
                    JobState.READY,
                    JobState.SCHEDULED,
                    JobState.RETRYING,
                    JobState.LIMITED,
                    JobState.RUNNING,
                    JobState.FAILED)
            .map(state -> "pg_catalog.count(*) filter (where " + JobFilters.condition(state) + ")")
            .collect(Collectors.joining(", "));

    @Override
    public JobCounts count(JobQuery filter) {
        Arguments.requireNonNull("filter", filter);
        // What is first by priority: that finds most of those that wait.
        JobQuery query = filter.toBuilder().sort(JobSort.PRIORITY).after(null).build();
        return connections.query("count jobs", false, client -> {
            JobScan.Reach reach = JobScan.of(client, schema, query);
            return client.sql(schema.in(reach.select(COUNT, query)))
                    .params(reach.values(query))
                    .query((row, number) -> new JobCounts(
                            row.getLong(1),
                            row.getLong(2),
                            row.getLong(3),
                            row.getLong(4),
                            row.getLong(5),
                            row.getLong(6),
                            reach.complete()))
                    .single();
        });
    }

    @Override
    public JobSelection select(JobQuery filter, int most) {
        Arguments.requireNonNull("filter", filter);
        Arguments.requireRange("most", most, 1, 1_000_000);
        JobQuery query = filter.toBuilder().sort(JobSort.OLDEST).after(null).build();
        return connections.query("select jobs", false, client -> {
            JobScan.Reach reach = JobScan.of(client, schema, query);
            String sql = reach.select("j.id", query) + " order by j.id limit " + (most + 1);
            List<Long> ids = client.sql(schema.in(sql))
                    .params(reach.values(query))
                    .query(Long.class)
                    .list();
            return ids.size() > most
                    ? new JobSelection(ids.subList(0, most), false)
                    : new JobSelection(ids, reach.complete());
        });
    }

    private static final String PAUSES = "select " + PauseStore.COLUMNS + """
             from {schema}.pgworker_pauses p where p.resumed_at is null order by p.kind, p.name
            """;

    @Override
    public List<Pause> pauses() {
        return connections.query(
                "list the pauses",
                false,
                client -> client.sql(schema.in(PAUSES))
                        .query((row, number) -> PauseStore.pause(row, 1))
                        .list());
    }

    @Override
    public List<NamedQueue> queues(@Nullable String after, int limit) {
        return overview.queues(after, limit);
    }

    @Override
    public Instant now() {
        return overview.now();
    }

    @Override
    public JobBacklog backlog() {
        return overview.backlog();
    }

    @Override
    public List<ActiveWorker> activeWorkers() {
        return overview.workers(usualSweep.threshold(), usualSweep.peerThreshold(), true);
    }

    @Override
    public List<ActiveWorker> activeWorkers(Duration staleAfter) {
        Arguments.requireNotNegative("staleAfter", staleAfter);
        return overview.workers(staleAfter, null, true);
    }

    @Override
    public List<ActiveWorker> registeredWorkers() {
        return overview.workers(usualSweep.threshold(), usualSweep.peerThreshold(), false);
    }

    @Override
    public List<TaskSummary> tasks(@Nullable String after, int limit) {
        return new TaskOverview(connections, schema).tasks(after, limit, registeredWorkers());
    }

    @Override
    public Optional<JobWait> waitOf(long id) {
        return new JobWaits(connections, schema, this::registeredWorkers).of(id);
    }

    @Override
    public List<JobStep> steps(long id, boolean results) {
        return new JobStepList(connections, schema).of(id, results);
    }

    @Override
    public List<RunningJob> running(int limit) {
        return new RunningJobs(connections, schema).list(limit);
    }

    @Override
    public List<Cancellation> cancellations(Collection<Long> ids) {
        return new JobCancels(connections, schema).of(ids);
    }

    @Override
    public CleanupPreview previewCleanup(Set<CleanupTask> tasks) {
        return new CleanupEstimate(connections, schema).of(Arguments.requireElements("tasks", tasks));
    }

    @Override
    public JobHistory history() {
        return history;
    }

    @Override
    public JobStatistics statistics() {
        return statistics;
    }
}
