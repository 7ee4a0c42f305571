package dev.pgworker.internal.client;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.internal.store.JobRows;
import dev.pgworker.internal.store.SweepReport;
import dev.pgworker.internal.store.SweepStore;
import dev.pgworker.job.ActiveWorker;
import dev.pgworker.job.CleanupResult;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.DeadWorker;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobAdmin;
import dev.pgworker.job.JobBacklog;
import dev.pgworker.job.JobCounts;
import dev.pgworker.job.JobPage;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobState;
import dev.pgworker.job.NamedQueue;
import dev.pgworker.job.Rescheduling;
import dev.pgworker.job.SweepOptions;
import dev.pgworker.job.SweepResult;
import dev.pgworker.schema.WorkerSchema;

/** Administers jobs through the functions of the schema on the connection of the caller's transaction. */
public final class JdbcJobAdmin implements JobAdmin {

    private static final String COLUMNS =
            "j.id, j.payload, j.priority, j.run_at, j.attempts, j.max_attempts, j.last_error, j.created_at,"
                    + " j.updated_at, j.key, j.locked_at, j.locked_by, j.revision, j.flags, ";

    private final ClientConnections connections;
    private final WorkerSchema schema;
    private final Cleanup cleanup;
    private final SweepStore sweeps;
    private final SweepStore.Request usualSweep;
    private final WorkerEvents events;

    /**
     * Creates the administration of one schema.
     *
     * @param usualSweep what a sweep does unless its options say otherwise
     * @param events where to tell what sweeps have done; delivers by itself
     */
    public JdbcJobAdmin(
            DataSource dataSource,
            WorkerSchema schema,
            SweepStore sweeps,
            SweepStore.Request usualSweep,
            WorkerEvents events) {
        this.events = events;
        this.sweeps = sweeps;
        this.usualSweep = usualSweep;
        this.connections = new ClientConnections(dataSource);
        this.schema = schema;
        this.cleanup = new Cleanup(dataSource, schema);
    }

    /** Of the job in row {@code j}. */
    private static final String RECOVERIES = """
            (select r.recoveries from {schema}.pgworker_recoveries r where r.job_id = j.id and r.revision = j.revision)
            """;

    private static final String COMPLETE = "select " + COLUMNS + "j.task_id, j.job_queue_id, " + RECOVERIES + """
            from {schema}.complete_jobs(?) j
            """;

    @Override
    public List<Job> complete(Collection<Long> ids) {
        return change("complete jobs", COMPLETE, ids, statement -> {});
    }

    private static final String FAIL = "select " + COLUMNS + "j.task_id, j.job_queue_id, " + RECOVERIES + """
            from {schema}.permanently_fail_jobs(?, ?) j
            """;

    @Override
    public List<Job> permanentlyFail(Collection<Long> ids, String reason) {
        Arguments.requireGivenText("reason", reason);
        return change("fail jobs permanently", FAIL, ids, statement -> statement.setString(2, reason));
    }

    /** Given attempts end the count, which the statement still sees. */
    private static final String RESCHEDULE = "select " + COLUMNS
            + "j.task_id, j.job_queue_id, case when given.attempts is null then " + RECOVERIES + """
            end
            from (select ?::bigint[], ?::pg_catalog.timestamptz, ?::int, ?::int, ?::int) given(ids, run_at, priority, attempts, max_attempts)
            cross join lateral {schema}.reschedule_jobs(
              given.ids, given.run_at, given.priority, given.attempts, given.max_attempts) j
            """;

    @Override
    public List<Job> reschedule(Collection<Long> ids, Rescheduling rescheduling) {
        Arguments.requireNonNull("rescheduling", rescheduling);
        return change("reschedule jobs", RESCHEDULE, ids, statement -> {
            statement.setObject(2, Timestamps.offset(rescheduling.runAt()), Types.TIMESTAMP_WITH_TIMEZONE);
            statement.setObject(3, rescheduling.priority(), Types.INTEGER);
            statement.setObject(4, rescheduling.attempts(), Types.INTEGER);
            statement.setObject(5, rescheduling.maxAttempts(), Types.INTEGER);
        });
    }

    /** Locks the jobs before it looks which of them have failed, so that none fails in between. */
    private static final String RUN_NOW = """
            with due as materialized (
              select j.id, j.attempts >= j.max_attempts as failed
              from {schema}._private_jobs j
              where j.id = any(?::bigint[]) and not {schema}.pgworker_locked(j.locked_at, j.locked_by)
              order by j.id for update)
            """ + "select " + COLUMNS
            + "j.task_id, j.job_queue_id, case when given.attempts is null then " + RECOVERIES + """
            end
            from (
              select pg_catalog.array_agg(due.id) as ids, case when due.failed then 0 end as attempts
              from due group by due.failed) given
            cross join lateral {schema}.reschedule_jobs(given.ids, run_at => pg_catalog.now(), attempts => given.attempts) j
            """;

    @Override
    public List<Job> runNow(Collection<Long> ids) {
        return change("make jobs due", RUN_NOW, ids, statement -> {});
    }

    /** Sets what follows the ids. */
    @FunctionalInterface
    private interface Binding {
        void to(PreparedStatement statement) throws SQLException;
    }

    private List<Job> change(String task, String sql, Collection<Long> ids, Binding others) {
        Set<Long> given = Arguments.requireElements("ids", ids);
        if (given.isEmpty()) {
            return List.of();
        }
        return connections.call(task, true, connection -> {
            try (PreparedStatement statement = prepare(connection, sql)) {
                statement.setArray(1, connection.createArrayOf("int8", given.toArray()));
                others.to(statement);
                Map<Long, Job> changed = new HashMap<>();
                for (Job job : changed(connection, statement)) {
                    changed.put(job.id(), job);
                }
                return given.stream()
                        .filter(changed::containsKey)
                        .map(changed::get)
                        .toList();
            }
        });
    }

    private static final String REMOVE = "select " + COLUMNS + "j.task_id, j.job_queue_id, " + RECOVERIES + """
            from {schema}.remove_job(?) j where j.id is not null
            """;

    @Override
    public Optional<Job> remove(String jobKey) {
        Arguments.requireGivenJobKey(jobKey);
        return connections.call("remove the job with key \"" + jobKey + "\"", true, connection -> {
            try (PreparedStatement statement = prepare(connection, REMOVE)) {
                statement.setString(1, jobKey);
                return changed(connection, statement).stream().findFirst();
            }
        });
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
    private List<Job> changed(Connection connection, PreparedStatement change) throws SQLException {
        try (ResultSet rows = change.executeQuery()) {
            Set<Integer> taskIds = new HashSet<>();
            Set<Integer> queueIds = new HashSet<>();
            while (rows.next()) {
                taskIds.add(rows.getInt(15));
                queueIds.add(rows.getInt(16));
            }
            if (taskIds.isEmpty()) {
                return List.of();
            }
            Map<Integer, String> tasks = names(connection, TASK_NAMES, taskIds);
            Map<Integer, String> queues = names(connection, QUEUE_NAMES, queueIds);
            List<Job> jobs = new ArrayList<>();
            rows.beforeFirst();
            while (rows.next()) {
                String task = tasks.get(rows.getInt(15));
                jobs.add(JobRows.addedJob(
                                rows, task == null ? "task " + rows.getInt(15) : task, queues.get(rows.getInt(16)))
                        .withRecoveries(rows.getInt(17)));
            }
            return jobs;
        }
    }

    private Map<Integer, String> names(Connection connection, String sql, Set<Integer> ids) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(sql))) {
            statement.setArray(1, connection.createArrayOf("int4", ids.toArray()));
            Map<Integer, String> names = new HashMap<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    names.put(rows.getInt(1), rows.getString(2));
                }
            }
            return names;
        }
    }

    /** Its rows can be read twice. */
    private PreparedStatement prepare(Connection connection, String sql) throws SQLException {
        return connection.prepareStatement(
                schema.in(sql), ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY);
    }

    private static final String FORCE_UNLOCK = """
            select {schema}.force_unlock_workers(?)
            """;

    @Override
    public void forceUnlockWorkers(Collection<String> workerIds) {
        Set<String> given = Arguments.requireElements("workerIds", workerIds);
        given.forEach(id -> Arguments.requireGivenText("workerIds", id));
        if (given.isEmpty()) {
            return;
        }
        connections.call("unlock the jobs of workers", false, connection -> {
            try (PreparedStatement statement = connection.prepareStatement(schema.in(FORCE_UNLOCK))) {
                statement.setArray(1, connection.createArrayOf("text", given.toArray()));
                return statement.execute();
            }
        });
    }

    @Override
    public SweepResult sweep(SweepOptions options) {
        Arguments.requireNonNull("options", options);
        SweepStore.Request request = usualSweep.with(options);
        SweepStore.Result result =
                connections.call("sweep", true, connection -> sweeps.sweep(connection, request, DeadWorker.BY_HAND));
        if (!request.dryRun()) {
            ClientConnections.afterCommit(() -> SweepReport.tell(result, DeadWorker.BY_HAND, events));
        }
        return new SweepResult(
                result.locked(), result.workerIds(), result.jobs().size());
    }

    @Override
    public CleanupResult cleanup(Set<CleanupTask> tasks) {
        Set<CleanupTask> given = Arguments.requireElements("tasks", tasks);
        try {
            return cleanup.run(given);
        } catch (SQLException e) {
            throw connections.translate("clean up", e);
        }
    }

    private static final String NAMED = "select " + COLUMNS
            + "coalesce(t.identifier, pg_catalog.concat('task ', j.task_id)), q.queue_name, " + RECOVERIES + """
            from page j
            left join {schema}._private_tasks t on t.id = j.task_id
            left join {schema}._private_job_queues q on q.id = j.job_queue_id
            order by j.id desc
            """;

    private static final String FIND = """
            with page as (select * from {schema}._private_jobs where id = ?)
            """ + NAMED;

    @Override
    public Optional<Job> find(long id) {
        return connections.call("find job " + id, false, connection -> {
            try (PreparedStatement statement = connection.prepareStatement(schema.in(FIND))) {
                statement.setLong(1, id);
                return named(statement).stream().findFirst();
            }
        });
    }

    private static List<Job> named(PreparedStatement statement) throws SQLException {
        List<Job> jobs = new ArrayList<>();
        try (ResultSet rows = statement.executeQuery()) {
            while (rows.next()) {
                jobs.add(JobRows.addedJob(rows, rows.getString(15), rows.getString(16))
                        .withRecoveries(rows.getInt(17)));
            }
        }
        return jobs;
    }

    @Override
    public JobPage list(JobQuery query) {
        Arguments.requireNonNull("query", query);
        Filters filters = new Filters(query);
        if (query.after() != null) {
            filters.add("j.id < ?", query.after());
        }
        String sql = "with page as materialized (select j.* from {schema}._private_jobs j where " + filters
                + " order by j.id desc limit " + (query.pageSize() + 1) + ") " + NAMED;
        List<Job> jobs = connections.call("list jobs", false, connection -> {
            try (PreparedStatement statement = connection.prepareStatement(schema.in(sql))) {
                filters.bind(statement);
                return named(statement);
            }
        });
        if (jobs.size() <= query.pageSize()) {
            return new JobPage(jobs, null);
        }
        List<Job> page = jobs.subList(0, query.pageSize());
        return new JobPage(page, page.get(page.size() - 1).id());
    }

    private static final String COUNT = """
            select
              pg_catalog.count(*) filter (where j.is_available and j.run_at <= pg_catalog.now()),
              pg_catalog.count(*) filter (where j.is_available and j.run_at > pg_catalog.now() and j.attempts = 0),
              pg_catalog.count(*) filter (where j.is_available and j.run_at > pg_catalog.now() and j.attempts > 0),
              pg_catalog.count(*) filter (where j.locked_at is not null),
              pg_catalog.count(*) filter (where j.locked_at is null and not j.is_available)
            from {schema}._private_jobs j where\s""";

    @Override
    public JobCounts count(JobQuery filter) {
        Arguments.requireNonNull("filter", filter);
        Filters filters = new Filters(filter);
        return connections.call("count jobs", false, connection -> {
            try (PreparedStatement statement = connection.prepareStatement(schema.in(COUNT + filters))) {
                filters.bind(statement);
                try (ResultSet row = statement.executeQuery()) {
                    row.next();
                    return new JobCounts(
                            row.getLong(1), row.getLong(2), row.getLong(3), row.getLong(4), row.getLong(5));
                }
            }
        });
    }

    private static final String QUEUES = """
            select q.queue_name,
                   (select pg_catalog.count(*) from {schema}._private_jobs j where j.job_queue_id = q.id and j.is_available),
                   q.locked_at, q.locked_by
            from {schema}._private_job_queues q
            where q.queue_name > ?::pg_catalog.text
            order by q.queue_name limit ?
            """;

    @Override
    public List<NamedQueue> queues(@Nullable String after, int limit) {
        if (after != null && !after.isEmpty()) {
            Arguments.requireGivenText("after", after);
        }
        Arguments.requireRange("limit", limit, 1, 1000);
        return connections.call("list the queues", false, connection -> {
            try (PreparedStatement statement = connection.prepareStatement(schema.in(QUEUES))) {
                statement.setString(1, after == null ? "" : after);
                statement.setInt(2, limit);
                List<NamedQueue> queues = new ArrayList<>();
                try (ResultSet rows = statement.executeQuery()) {
                    while (rows.next()) {
                        queues.add(new NamedQueue(
                                rows.getString(1),
                                rows.getLong(2),
                                Timestamps.nullableInstant(rows, 3),
                                rows.getString(4)));
                    }
                }
                return queues;
            }
        });
    }

    private static final String BACKLOG = """
            select b.ready, b.scheduled, b.retrying, b.failed, extract(epoch from pg_catalog.now() - b.oldest_due)::double precision,
                   (select pg_catalog.count(*) from {schema}._private_workers w
                    where w.last_heartbeat_at > pg_catalog.now() - interval '5 minutes'),
                   b.estimated
            from {schema}.pgworker_backlog(10000) b
            """;

    @Override
    public JobBacklog backlog() {
        return connections.call("look at the backlog", false, connection -> {
            try (PreparedStatement statement = connection.prepareStatement(schema.in(BACKLOG));
                    ResultSet row = statement.executeQuery()) {
                row.next();
                double seconds = row.getDouble(5);
                Duration oldestDue = row.wasNull() ? null : Duration.ofMillis(Math.round(seconds * 1_000));
                return new JobBacklog(
                        row.getLong(1),
                        row.getLong(2),
                        row.getLong(3),
                        row.getLong(4),
                        oldestDue,
                        row.getLong(6),
                        row.getBoolean(7));
            }
        });
    }

    /** The conditions of a query with their values. */
    private static final class Filters {

        private final List<String> conditions = new ArrayList<>(List.of("true"));
        private final List<Object> values = new ArrayList<>();

        Filters(JobQuery query) {
            if (query.state() != null) {
                add(condition(query.state()));
            }
            if (query.taskIdentifier() != null) {
                add(
                        "j.task_id = (select t.id from {schema}._private_tasks t where t.identifier = ?::pg_catalog.text)",
                        query.taskIdentifier());
            }
            if (query.queueName() != null) {
                add(
                        "j.job_queue_id = (select q.id from {schema}._private_job_queues q where q.queue_name = ?::pg_catalog.text)",
                        query.queueName());
            }
            String search = query.search();
            if (search != null) {
                add(
                        "(pg_catalog.strpos(j.key, ?) > 0 or pg_catalog.strpos(j.last_error, ?) > 0"
                                + " or pg_catalog.strpos(j.payload::pg_catalog.text, ?) > 0)",
                        search,
                        search,
                        search);
            }
        }

        private static String condition(JobState state) {
            return switch (state) {
                case READY -> "j.is_available and j.run_at <= pg_catalog.now()";
                case SCHEDULED -> "j.is_available and j.run_at > pg_catalog.now() and j.attempts = 0";
                case RETRYING -> "j.is_available and j.run_at > pg_catalog.now() and j.attempts > 0";
                case RUNNING -> "j.locked_at is not null";
                case FAILED -> "j.locked_at is null and not j.is_available";
            };
        }

        void add(String condition, Object... itsValues) {
            conditions.add(condition);
            values.addAll(List.of(itsValues));
        }

        void bind(PreparedStatement statement) throws SQLException {
            for (int i = 0; i < values.size(); i++) {
                statement.setObject(i + 1, values.get(i));
            }
        }

        @Override
        public String toString() {
            return String.join(" and ", conditions);
        }
    }

    private static final String WORKERS = """
            select w.id, w.started_at, w.last_heartbeat_at, w.metadata, coalesce(held.jobs, 0),
              w.last_heartbeat_at < pg_catalog.now() - (
                select t.usual
                from {schema}.pgworker_thresholds(
                  w.metadata, ?::double precision * interval '1 ms', ?::double precision * interval '1 ms', 1) t)
            from {schema}._private_workers w
            left join (
              select j.locked_by, pg_catalog.count(*) as jobs from {schema}._private_jobs j
              where j.locked_by is not null
              group by j.locked_by) held on held.locked_by = w.id
            order by w.started_at, w.id
            """;

    @Override
    public List<ActiveWorker> activeWorkers() {
        return workers(usualSweep.threshold(), usualSweep.peerThreshold());
    }

    @Override
    public List<ActiveWorker> activeWorkers(Duration staleAfter) {
        Arguments.requireNotNegative("staleAfter", staleAfter);
        return workers(staleAfter, null);
    }

    private List<ActiveWorker> workers(Duration staleAfter, @Nullable Duration peersStaleAfter) {
        return connections.call("list the workers", false, connection -> {
            try (PreparedStatement statement = connection.prepareStatement(schema.in(WORKERS))) {
                statement.setDouble(1, SweepStore.millis(staleAfter));
                statement.setObject(
                        2, peersStaleAfter == null ? null : SweepStore.millis(peersStaleAfter), Types.DOUBLE);
                List<ActiveWorker> workers = new ArrayList<>();
                try (ResultSet rows = statement.executeQuery()) {
                    while (rows.next()) {
                        workers.add(new ActiveWorker(
                                rows.getString(1),
                                Timestamps.instant(rows, 2),
                                Timestamps.instant(rows, 3),
                                rows.getString(4),
                                rows.getLong(5),
                                rows.getBoolean(6)));
                    }
                }
                return workers;
            }
        });
    }
}
