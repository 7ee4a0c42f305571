package dev.pgworker.internal.client;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;
import java.util.stream.Stream;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.client.JdbcJobHandle.Addition;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.internal.store.EndStore;
import dev.pgworker.internal.store.JobRows;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobHandle;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.job.Task;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.PayloadCodec;

/**
 * Adds jobs on the connection of the caller's transaction: those with a key through {@code add_job} and {@code add_jobs},
 * those without through statements that do the same but return no rows. Plain JDBC, for the reason that the package gives.
 */
public final class JdbcJobScheduler implements JobScheduler {

    private final ClientConnections connections;
    private final WorkerSchema schema;
    private final PayloadCodec codec;
    private final ScheduleInterceptorChain interceptors;
    private final EndStore ends;
    private final ResultWaits waits;
    private final Duration keepResultsFor;
    private final String addUsual;
    private final String addPlain;
    private final String addKeyed;

    /**
     * Creates a scheduler for the jobs of one schema.
     *
     * @param interceptors asked for when the first job is added
     * @param keepResultsFor how long after their ends the results of jobs are kept that are asked for
     */
    public JdbcJobScheduler(
            DataSource dataSource,
            WorkerSchema schema,
            PayloadCodec codec,
            Supplier<List<ScheduleInterceptor>> interceptors,
            Duration keepResultsFor) {
        this.ends = new EndStore(dataSource, schema);
        this.waits = new ResultWaits(ends);
        this.keepResultsFor = keepResultsFor;
        this.connections = new ClientConnections(dataSource);
        this.schema = schema;
        this.codec = codec;
        this.interceptors = new ScheduleInterceptorChain(interceptors);
        this.addUsual = schema.in(ADD_USUAL);
        this.addPlain = schema.in(ADD_PLAIN);
        this.addKeyed = schema.in(ADD_KEYED);
    }

    @Override
    public Job addJob(String identifier, @Nullable Object payload, JobSpec spec) {
        Arguments.requireIdentifier(identifier);
        if (!interceptors.isEmpty()) {
            return addIntercepted(JobRequest.of(identifier, payload, spec));
        }
        return add(identifier, codec.encode("payload", payload), spec);
    }

    @Override
    public <P> Job addJob(Task<P> task, P payload, JobSpec spec) {
        Arguments.requireNonNull("task", task);
        if (!interceptors.isEmpty()) {
            return addIntercepted(JobRequest.of(task, payload, spec));
        }
        return add(task.identifier(), codec.encode("payload", payload, task.payloadType()), spec);
    }

    @Override
    public List<Job> addJobs(List<JobRequest> requests) {
        Arguments.requireNonNull("requests", requests);
        BulkAdd bulk = new BulkAdd(schema, codec, interceptors);
        List<BulkAdd.Row> rows = bulk.check(requests);
        List<Job> added = rows.isEmpty()
                ? List.of()
                : connections.call("add jobs", bulk.needsTransaction(rows), connection -> bulk.add(connection, rows));
        return bulk.withSkipped(added);
    }

    @Override
    public long addJobs(Stream<JobRequest> requests) {
        Arguments.requireNonNull("requests", requests);
        BulkAdd bulk = new BulkAdd(schema, codec, interceptors);
        return connections.call("add jobs", true, connection -> bulk.add(connection, requests));
    }

    @Override
    public <R> JobHandle<R> addJobForResult(JobRequest asked, Class<R> resultType) {
        Arguments.requireNonNull("request", asked);
        Arguments.requireNonNull("resultType", resultType);
        JobRequest request = interceptors.isEmpty() ? asked : interceptors.apply(asked);
        if (request == null) {
            return handle(0, resultType, Addition.past());
        }
        List<String> flags = new ArrayList<>(request.spec().flags());
        flags.remove(EndStore.RESULT_FLAG);
        flags.add(EndStore.RESULT_FLAG);
        JobSpec spec = request.spec().toBuilder().flags(flags).build();
        String json = encode(request);
        return connections.call(
                "add a job of task \"" + request.identifier() + "\" for its result", true, connection -> {
                    long id = add(connection, request.identifier(), json, spec).id();
                    ends.keep(connection, id, keepResultsFor);
                    return handle(id, resultType, connections.joins(connection) ? Addition.current() : Addition.past());
                });
    }

    @Override
    public <R> JobHandle<R> resultOf(long jobId, Class<R> resultType) {
        return handle(jobId, Arguments.requireNonNull("resultType", resultType), Addition.past());
    }

    private <R> JobHandle<R> handle(long jobId, Class<R> resultType, Addition addition) {
        return new JdbcJobHandle<>(jobId, resultType, waits, codec, addition);
    }

    private Job addIntercepted(JobRequest asked) {
        JobRequest request = interceptors.apply(asked);
        if (request == null) {
            return JobRows.skippedJob(asked, encode(asked));
        }
        return add(request.identifier(), encode(request), request.spec());
    }

    private String encode(JobRequest request) {
        return codec.encode("payload", request.payload(), request.payloadType());
    }

    private Job add(String identifier, String json, JobSpec spec) {
        Arguments.requireNonNull("spec", spec);
        return connections.call(
                "add a job of task \"" + identifier + "\"",
                false,
                connection -> add(connection, identifier, json, spec));
    }

    private Job add(Connection connection, String identifier, String json, JobSpec spec) throws SQLException {
        return spec.jobKey() == null
                ? addPlain(connection, identifier, json, spec)
                : addKeyed(connection, identifier, json, spec);
    }

    // What add_job does for the usual job, whose task exists, without the cost of calling a function.
    // Adds nothing where there is more to do.
    private static final String ADD_USUAL = """
            insert into {schema}._private_jobs (task_id, payload, run_at, max_attempts, priority)
            select t.id, ?::pg_catalog.json, coalesce(?, pg_catalog.now()), coalesce(?, 25), coalesce(?, 0)
            from {schema}._private_tasks t
            where t.identifier = ?::pg_catalog.text and pg_catalog.current_setting('transaction_isolation') = 'read committed'
            returning id, pg_catalog.now(), pg_catalog.pg_notify(
              'jobs:insert', pg_catalog.concat('{"r":', pg_catalog.random(), ',"count":1', case when pg_catalog.isfinite(run_at) then
                pg_catalog.concat(',"at":', (pg_catalog.date_part('epoch', run_at) operator(pg_catalog.*) 1000)::bigint) end,
                ',"p":[', priority, ']', case when run_at operator(pg_catalog.<=) pg_catalog.now() then
                pg_catalog.concat(',"id":', id) end, '}'))
            """;

    private static final String ADD_PLAIN = """
            select
              coalesce(
                ({schema}.add_job(
                  identifier => ?, payload => ?::pg_catalog.json, queue_name => ?, run_at => ?, max_attempts => ?,
                  priority => ?, flags => ?::pg_catalog.text[])).id,
                {schema}.pgworker_kept_out(0, 1)),
              pg_catalog.now()
            """;

    private Job addPlain(Connection connection, String identifier, String payload, JobSpec spec) throws SQLException {
        Job usual = spec.queueName() == null && spec.flags().isEmpty()
                ? addUsual(connection, identifier, payload, spec)
                : null;
        if (usual != null) {
            return usual;
        }
        try (PreparedStatement statement = connection.prepareStatement(addPlain)) {
            statement.setString(1, identifier);
            statement.setString(2, payload);
            statement.setString(3, spec.queueName());
            statement.setObject(4, Timestamps.offset(spec.runAt()), Types.TIMESTAMP_WITH_TIMEZONE);
            statement.setObject(5, spec.maxAttempts(), Types.INTEGER);
            statement.setObject(6, spec.priority(), Types.INTEGER);
            statement.setString(7, JobRows.flags(spec));
            return Objects.requireNonNull(added(statement, identifier, payload, spec));
        }
    }

    private @Nullable Job addUsual(Connection connection, String identifier, String payload, JobSpec spec)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(addUsual)) {
            statement.setString(1, payload);
            statement.setObject(2, Timestamps.offset(spec.runAt()), Types.TIMESTAMP_WITH_TIMEZONE);
            statement.setObject(3, spec.maxAttempts(), Types.INTEGER);
            statement.setObject(4, spec.priority(), Types.INTEGER);
            statement.setString(5, identifier);
            return added(statement, identifier, payload, spec);
        }
    }

    private static @Nullable Job added(PreparedStatement statement, String identifier, String payload, JobSpec spec)
            throws SQLException {
        try (ResultSet row = statement.executeQuery()) {
            return row.next()
                    ? JobRows.freshJob(row.getLong(1), identifier, payload, spec, Timestamps.instant(row, 2))
                    : null;
        }
    }

    private static final String ADD_KEYED = """
            select coalesce(id, {schema}.pgworker_kept_out(0, 1)), payload, priority, run_at, attempts, max_attempts, last_error,
                   created_at, updated_at, key, locked_at, locked_by, revision, flags
            from {schema}.add_job(
              identifier => ?, payload => ?::pg_catalog.json, queue_name => ?, run_at => ?, max_attempts => ?,
              job_key => ?, priority => ?, flags => ?::pg_catalog.text[], job_key_mode => ?)
            """;

    private Job addKeyed(Connection connection, String identifier, String payload, JobSpec spec) throws SQLException {
        JobKeyMode mode = JobRows.keyMode(spec);
        try (PreparedStatement statement = connection.prepareStatement(addKeyed)) {
            statement.setString(1, identifier);
            statement.setString(2, payload);
            statement.setString(3, spec.queueName());
            statement.setObject(4, Timestamps.offset(spec.runAt()), Types.TIMESTAMP_WITH_TIMEZONE);
            statement.setObject(5, spec.maxAttempts(), Types.INTEGER);
            statement.setString(6, spec.jobKey());
            statement.setObject(7, spec.priority(), Types.INTEGER);
            statement.setString(8, JobRows.flags(spec));
            statement.setString(9, mode.sqlName());
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                // Only an untouched job may have another task and queue than the ones just given.
                return mode == JobKeyMode.UNSAFE_DEDUPE
                        ? withItsOwnNames(connection, row, identifier, spec.queueName())
                        : JobRows.addedJob(row, identifier, spec.queueName());
            }
        }
    }

    private static final String NAMES = """
            select task_identifier, queue_name from {schema}.jobs where id = ?::bigint
            """;

    /** The names given hold for a job that has ended since. */
    private Job withItsOwnNames(
            Connection connection, ResultSet job, String givenIdentifier, @Nullable String givenQueue)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(NAMES))) {
            statement.setLong(1, job.getLong(1));
            try (ResultSet names = statement.executeQuery()) {
                return names.next()
                        ? JobRows.addedJob(job, names.getString(1), names.getString(2))
                        : JobRows.addedJob(job, givenIdentifier, givenQueue);
            }
        }
    }
}
