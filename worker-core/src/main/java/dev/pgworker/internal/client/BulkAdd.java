package dev.pgworker.internal.client;

import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Types;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.SqlArrays;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.internal.store.JobRows;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.PayloadCodec;

/**
 * One bulk add, all or nothing within the caller's transaction.
 *
 * <p>Jobs without keys are written in chunks, and only their ids come back. Those with keys go into one statement, which locks them in key order: two
 * such adds then wait for each other, but never in a circle. Used by one thread for one add. Plain JDBC, for the reason that the
 * package gives.
 */
final class BulkAdd {

    private static final int CHUNK = 5_000;

    /** After so many jobs the planner's idea of the table is renewed. */
    private static final long ANALYZE_AFTER = 50_000;

    private final WorkerSchema schema;
    private final PayloadCodec codec;

    private final ScheduleInterceptorChain interceptors;

    /** Placeholders of the requests that are not added, by their indexes. */
    private final SortedMap<Integer, Job> skipped = new TreeMap<>();

    private final Map<String, Integer> keys = new HashMap<>();
    private @Nullable JobKeyMode mode;
    private int index;

    BulkAdd(WorkerSchema schema, PayloadCodec codec, ScheduleInterceptorChain interceptors) {
        this.interceptors = interceptors;
        this.schema = schema;
        this.codec = codec;
    }

    /** A checked request with its payload as JSON. */
    record Row(String identifier, String json, JobSpec spec) {
        boolean keyed() {
            return spec.jobKey() != null;
        }
    }

    /** Checks all requests before anything is written. */
    List<Row> check(List<JobRequest> requests) {
        List<Row> rows = new ArrayList<>(requests.size());
        for (JobRequest request : requests) {
            Row row = check(request);
            if (row != null) {
                rows.add(row);
            }
        }
        return rows;
    }

    /** Puts placeholders where requests have been skipped, so that jobs and requests have the same order. */
    List<Job> withSkipped(List<Job> added) {
        if (skipped.isEmpty()) {
            return added;
        }
        List<Job> jobs = new ArrayList<>(added);
        skipped.forEach(jobs::add);
        return jobs;
    }

    /** Returns null for a job that is not to be added. */
    private @Nullable Row check(@Nullable JobRequest asked) {
        String name = "requests[" + index + "]";
        if (asked == null) {
            throw new IllegalArgumentException(name + " must not be null");
        }
        JobRequest request = interceptors.apply(asked);
        if (request == null) {
            skipped.put(index, JobRows.skippedJob(asked, encode(name, asked)));
            index++;
            return null;
        }
        JobSpec spec = request.spec();
        if (spec.jobKey() != null) {
            checkKey(name, spec, spec.jobKey());
        }
        String json = encode(name, request);
        index++;
        return new Row(request.identifier(), json, spec);
    }

    private String encode(String name, JobRequest request) {
        return codec.encode(name + ".payload", request.payload(), request.payloadType());
    }

    private void checkKey(String name, JobSpec spec, String key) {
        JobKeyMode own = JobRows.keyMode(spec);
        if (own != JobKeyMode.REPLACE && own != JobKeyMode.PRESERVE_RUN_AT) {
            throw new IllegalArgumentException(
                    name + ".jobKeyMode must be REPLACE or PRESERVE_RUN_AT in a bulk add, but is " + own);
        }
        if (mode != null && mode != own) {
            throw new IllegalArgumentException(name + ".jobKeyMode must be " + mode
                    + ", like that of the earlier requests with a job key, but is " + own);
        }
        Integer before = keys.putIfAbsent(key, index);
        if (before != null) {
            throw new IllegalArgumentException(
                    name + ".jobKey must not be that of requests[" + before + "], but both are \"" + key + "\"");
        }
        mode = own;
    }

    /** Returns true if the rows take more than one statement. */
    boolean needsTransaction(List<Row> rows) {
        return (keys.isEmpty() && rows.size() > CHUNK) || rows.size() >= ANALYZE_AFTER;
    }

    /** Adds checked rows and returns the jobs in their order. */
    List<Job> add(Connection connection, List<Row> rows) throws SQLException {
        if (!needsTransaction(rows)) {
            return write(connection, rows);
        }
        int chunk = keys.isEmpty() ? CHUNK : rows.size();
        List<Job> jobs = new ArrayList<>(rows.size());
        allOrNothing(connection, () -> {
            for (int from = 0; from < rows.size(); from += chunk) {
                jobs.addAll(write(connection, rows.subList(from, Math.min(from + chunk, rows.size()))));
            }
            analyzeAfter(connection, rows.size());
        });
        return jobs;
    }

    /** Checks and adds requests while they are read; returns how many there were. */
    long add(Connection connection, Stream<JobRequest> requests) throws SQLException {
        long[] total = {0};
        allOrNothing(connection, () -> {
            List<Row> keyed = new ArrayList<>();
            List<Row> chunk = new ArrayList<>(CHUNK);
            for (Iterator<JobRequest> each = requests.iterator(); each.hasNext(); ) {
                Row row = check(each.next());
                if (row == null) {
                    continue;
                }
                (row.keyed() ? keyed : chunk).add(row);
                total[0]++;
                if (chunk.size() == CHUNK) {
                    writePlain(connection, chunk);
                    chunk.clear();
                }
            }
            writePlain(connection, chunk);
            countKeyed(connection, keyed);
            analyzeAfter(connection, total[0]);
        });
        return total[0];
    }

    @FunctionalInterface
    private interface Writes {
        void run() throws SQLException;
    }

    /** A caller that catches the failure and commits keeps none of the chunks. */
    private static void allOrNothing(Connection connection, Writes writes) throws SQLException {
        Savepoint savepoint = connection.setSavepoint();
        try {
            writes.run();
        } catch (SQLException | RuntimeException | Error e) {
            try {
                connection.rollback(savepoint);
            } catch (SQLException f) {
                e.addSuppressed(f);
            }
            throw e;
        }
        connection.releaseSavepoint(savepoint);
    }

    private List<Job> write(Connection connection, List<Row> rows) throws SQLException {
        if (!keys.isEmpty()) {
            return writeKeyed(connection, rows);
        }
        Added added = writePlain(connection, rows);
        List<Job> jobs = new ArrayList<>(rows.size());
        for (Row row : rows) {
            long id = added.ids.get(jobs.size());
            jobs.add(JobRows.freshJob(id, row.identifier, row.json, row.spec, added.at));
        }
        return jobs;
    }

    /** What the database decided about jobs without keys, in their order. */
    private record Added(List<Long> ids, Instant at) {}

    private static final String ADD_PLAIN = """
            select job_ids, added_at from {schema}.pgworker_add_jobs(?, ?, ?, ?::pg_catalog.timestamptz[], ?, ?, ?)
            """;

    private Added writePlain(Connection connection, List<Row> rows) throws SQLException {
        if (rows.isEmpty()) {
            return new Added(List.of(), Instant.EPOCH);
        }
        Added added = areAlike(rows) ? writeAlike(connection, rows) : null;
        if (added != null) {
            return added;
        }
        try (PreparedStatement statement = connection.prepareStatement(schema.in(ADD_PLAIN))) {
            statement.setArray(1, texts(connection, rows, Row::identifier));
            statement.setArray(2, texts(connection, rows, Row::json));
            statement.setArray(3, texts(connection, rows, r -> r.spec.queueName()));
            statement.setArray(4, SqlArrays.times(connection, rows, r -> r.spec.runAt()));
            statement.setArray(5, numbers(connection, rows, r -> r.spec.maxAttempts()));
            statement.setArray(6, numbers(connection, rows, r -> r.spec.priority()));
            statement.setArray(7, texts(connection, rows, r -> JobRows.flags(r.spec)));
            return Objects.requireNonNull(added(statement));
        }
    }

    private static @Nullable Added added(PreparedStatement statement) throws SQLException {
        try (ResultSet result = statement.executeQuery()) {
            return result.next()
                    ? new Added(List.of((Long[]) result.getArray(1).getArray()), Timestamps.instant(result, 2))
                    : null;
        }
    }

    // What pgworker_add_jobs does for jobs of one task that exists, in a fifth less time. Adds nothing where there is
    // more to do.
    private static final String ADD_ALIKE = """
            with task as materialized (
              select id from {schema}._private_tasks
              where identifier = ?::pg_catalog.text and pg_catalog.current_setting('transaction_isolation') = 'read committed'),
            put as (
              insert into {schema}._private_jobs (task_id, payload, run_at, max_attempts, priority)
              select (select id from task), p.payload::pg_catalog.json, coalesce(?, pg_catalog.now()), coalesce(?, 25), coalesce(?, 0)
              from pg_catalog.unnest(?::pg_catalog.text[]) p(payload) where exists (select from task)
              returning id, run_at, priority)
            select pg_catalog.array_agg(id), pg_catalog.now(),
              {schema}.pgworker_wake(pg_catalog.count(*), pg_catalog.min(run_at), pg_catalog.min(priority)::pg_catalog.text)
            from put
            having case
              when pg_catalog.count(*) = any(array[0::bigint, ?::bigint]) then pg_catalog.count(*) > 0::bigint
              else {schema}.pgworker_kept_out(pg_catalog.count(*), ?::bigint) is null
            end
            """;

    /** Returns true if the jobs differ in their payloads only, and are in no queue and have no flags. */
    private static boolean areAlike(List<Row> rows) {
        Row first = rows.get(0);
        return first.spec.queueName() == null
                && first.spec.flags().isEmpty()
                && rows.stream()
                        .allMatch(row -> row.identifier.equals(first.identifier) && row.spec.equals(first.spec));
    }

    private @Nullable Added writeAlike(Connection connection, List<Row> rows) throws SQLException {
        Row first = rows.get(0);
        try (PreparedStatement statement = connection.prepareStatement(schema.in(ADD_ALIKE))) {
            statement.setString(1, first.identifier);
            statement.setObject(2, Timestamps.offset(first.spec.runAt()), Types.TIMESTAMP_WITH_TIMEZONE);
            statement.setObject(3, first.spec.maxAttempts(), Types.INTEGER);
            statement.setObject(4, first.spec.priority(), Types.INTEGER);
            statement.setArray(5, texts(connection, rows, Row::json));
            statement.setLong(6, rows.size());
            statement.setLong(7, rows.size());
            return added(statement);
        }
    }

    private static final String SPECS = """
            from {schema}.add_jobs(
              array(
                select (s.identifier, s.payload::pg_catalog.json, s.queue_name, s.run_at, s.max_attempts, s.job_key, s.priority,
                        s.flags::pg_catalog.text[])::{schema}.job_spec
                from unnest(?::pg_catalog.text[], ?::pg_catalog.text[], ?::pg_catalog.text[], ?::pg_catalog.timestamptz[], ?::int[],
                    ?::pg_catalog.text[], ?::int[], ?::pg_catalog.text[])
                  with ordinality s(identifier, payload, queue_name, run_at, max_attempts, job_key, priority, flags, place)
                order by s.place),
              job_key_preserve_run_at => ?)
            """;

    private static final String ADD_KEYED = """
            select id, payload, priority, run_at, attempts, max_attempts, last_error, created_at, updated_at, key,
                   locked_at, locked_by, revision, flags,
                   case when pg_catalog.count(id) over () < ?::bigint then
                     {schema}.pgworker_kept_out(pg_catalog.count(id) over (), ?::bigint)
                   end
            """ + SPECS;

    private List<Job> writeKeyed(Connection connection, List<Row> rows) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(ADD_KEYED))) {
            bindKeyed(connection, statement, rows);
            List<Job> jobs = new ArrayList<>(rows.size());
            try (ResultSet result = statement.executeQuery()) {
                while (result.next()) {
                    Row row = rows.get(jobs.size());
                    jobs.add(JobRows.addedJob(result, row.identifier, row.spec.queueName()));
                }
            }
            return jobs;
        }
    }

    private static final String COUNT_KEYED = """
            select
              case when pg_catalog.count(id) < ?::bigint then {schema}.pgworker_kept_out(pg_catalog.count(id), ?::bigint) end
            """ + SPECS;

    private void countKeyed(Connection connection, List<Row> rows) throws SQLException {
        if (rows.isEmpty()) {
            return;
        }
        try (PreparedStatement statement = connection.prepareStatement(schema.in(COUNT_KEYED))) {
            bindKeyed(connection, statement, rows);
            statement.executeQuery().close();
        }
    }

    private void bindKeyed(Connection connection, PreparedStatement statement, List<Row> rows) throws SQLException {
        statement.setLong(1, rows.size());
        statement.setLong(2, rows.size());
        statement.setArray(3, texts(connection, rows, Row::identifier));
        statement.setArray(4, texts(connection, rows, Row::json));
        statement.setArray(5, texts(connection, rows, r -> r.spec.queueName()));
        statement.setArray(6, SqlArrays.times(connection, rows, r -> r.spec.runAt()));
        statement.setArray(7, numbers(connection, rows, r -> r.spec.maxAttempts()));
        statement.setArray(8, texts(connection, rows, r -> r.spec.jobKey()));
        statement.setArray(9, numbers(connection, rows, r -> r.spec.priority()));
        statement.setArray(10, texts(connection, rows, r -> JobRows.flags(r.spec)));
        statement.setBoolean(11, mode == JobKeyMode.PRESERVE_RUN_AT);
    }

    // An array of the exact element type travels in binary; one that holds only nulls does not travel at all.

    private static @Nullable Array texts(Connection connection, List<Row> rows, Function<Row, @Nullable String> value)
            throws SQLException {
        return array(connection, "text", rows, new @Nullable String[rows.size()], value);
    }

    private static @Nullable Array numbers(
            Connection connection, List<Row> rows, Function<Row, @Nullable Integer> value) throws SQLException {
        return array(connection, "int4", rows, new @Nullable Integer[rows.size()], value);
    }

    /** Fills the given array, whose element type is that of the values. */
    private static @Nullable Array array(
            Connection connection,
            String type,
            List<Row> rows,
            @Nullable Object[] values,
            Function<Row, ? extends @Nullable Object> value)
            throws SQLException {
        boolean any = false;
        for (int i = 0; i < values.length; i++) {
            values[i] = value.apply(rows.get(i));
            any |= values[i] != null;
        }
        return any ? connection.createArrayOf(type, values) : null;
    }

    private static final String ANALYZE = "analyze (skip_locked) {schema}._private_jobs";

    /** A role that does not own the table gets a warning from the server and continues. */
    private void analyzeAfter(Connection connection, long added) throws SQLException {
        if (added >= ANALYZE_AFTER) {
            try (PreparedStatement statement = connection.prepareStatement(schema.in(ANALYZE))) {
                statement.execute();
            }
        }
    }
}
