package dev.pgworker.store;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.PayloadCodec;

/**
 * One bulk add, all or nothing within the caller's transaction.
 *
 * <p>Jobs without keys are written in chunks. Those with keys go into one statement, which locks them in key order: two
 * such adds then wait for each other, but never in a circle. Used by one thread for one add.
 */
final class BulkAdd {

    private static final int CHUNK = 5_000;

    /** After so many jobs the planner's idea of the table is renewed. */
    private static final long ANALYZE_AFTER = 50_000;

    private final WorkerSchema schema;
    private final PayloadCodec codec;

    private final Map<String, Integer> keys = new HashMap<>();
    private @Nullable JobKeyMode mode;
    private int index;

    BulkAdd(WorkerSchema schema, PayloadCodec codec) {
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
            rows.add(check(request));
        }
        return rows;
    }

    private Row check(@Nullable JobRequest request) {
        String name = "requests[" + index + "]";
        if (request == null) {
            throw new IllegalArgumentException(name + " must not be null");
        }
        JobSpec spec = request.spec();
        if (spec.jobKey() != null) {
            checkKey(name, spec, spec.jobKey());
        }
        String json = request.payloadType() == null
                ? codec.encode(name + ".payload", request.payload())
                : codec.encode(name + ".payload", request.payload(), request.payloadType());
        index++;
        return new Row(request.identifier(), json, spec);
    }

    private void checkKey(String name, JobSpec spec, String key) {
        JobKeyMode own = spec.jobKeyMode() == null ? JobKeyMode.REPLACE : spec.jobKeyMode();
        if (own == JobKeyMode.UNSAFE_DEDUPE) {
            throw new IllegalArgumentException(
                    name + ".jobKeyMode must be REPLACE or PRESERVE_RUN_AT in a bulk add, but is UNSAFE_DEDUPE");
        }
        if (mode != null && mode != own) {
            throw new IllegalArgumentException(name + ".jobKeyMode must be " + mode
                    + ", as that of the requests with a job key before it, but is " + own);
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
                (row.keyed() ? keyed : chunk).add(row);
                total[0]++;
                if (chunk.size() == CHUNK) {
                    count(connection, chunk);
                    chunk.clear();
                }
            }
            count(connection, chunk);
            count(connection, keyed);
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

    private static final String SPECS = """
            from {schema}.add_jobs(
              array(
                select (s.identifier, s.payload::json, s.queue_name, s.run_at, s.max_attempts, s.job_key, s.priority,
                        s.flags::text[])::{schema}.job_spec
                from unnest(?::text[], ?::text[], ?::text[], ?::timestamptz[], ?::int2[], ?::text[], ?::int2[], ?::text[])
                  with ordinality s(identifier, payload, queue_name, run_at, max_attempts, job_key, priority, flags, place)
                order by s.place),
              job_key_preserve_run_at => ?)
            """;

    private static final String ADD_JOBS = """
            select id, payload, priority, run_at, attempts, max_attempts, last_error, created_at, updated_at, key,
                   locked_at, locked_by, revision, flags
            """ + SPECS;

    private List<Job> write(Connection connection, List<Row> rows) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(ADD_JOBS))) {
            bind(connection, statement, rows);
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

    private static final String COUNT_JOBS = "select count(*) " + SPECS;

    private void count(Connection connection, List<Row> rows) throws SQLException {
        if (rows.isEmpty()) {
            return;
        }
        try (PreparedStatement statement = connection.prepareStatement(schema.in(COUNT_JOBS))) {
            bind(connection, statement, rows);
            statement.executeQuery().close();
        }
    }

    private void bind(Connection connection, PreparedStatement statement, List<Row> rows) throws SQLException {
        bind(connection, statement, 1, "text", rows, Row::identifier);
        bind(connection, statement, 2, "text", rows, Row::json);
        bind(connection, statement, 3, "text", rows, r -> r.spec.queueName());
        bind(connection, statement, 4, "timestamptz", rows, r -> text(r.spec.runAt()));
        bind(connection, statement, 5, "int2", rows, r -> r.spec.maxAttempts());
        bind(connection, statement, 6, "text", rows, r -> r.spec.jobKey());
        bind(connection, statement, 7, "int2", rows, r -> r.spec.priority());
        for (Row row : rows) {
            if (!row.spec.flags().isEmpty()) {
                bindFlags(connection, statement, rows);
                statement.setBoolean(9, mode == JobKeyMode.PRESERVE_RUN_AT);
                return;
            }
        }
        bind(connection, statement, 8, "text", rows, r -> null);
        statement.setBoolean(9, mode == JobKeyMode.PRESERVE_RUN_AT);
    }

    /** Arrays of arrays must be rectangular, so each job's flags travel as the text of an array. */
    private static void bindFlags(Connection connection, PreparedStatement statement, List<Row> rows)
            throws SQLException {
        @Nullable Object[] texts = new @Nullable Object[rows.size()];
        for (int i = 0; i < texts.length; i++) {
            List<String> flags = rows.get(i).spec.flags();
            texts[i] = flags.isEmpty()
                    ? null
                    : connection.createArrayOf("text", flags.toArray()).toString();
        }
        statement.setArray(8, connection.createArrayOf("text", texts));
    }

    private static void bind(
            Connection connection,
            PreparedStatement statement,
            int parameter,
            String type,
            List<Row> rows,
            Function<Row, @Nullable Object> value)
            throws SQLException {
        @Nullable Object[] values = new @Nullable Object[rows.size()];
        for (int i = 0; i < values.length; i++) {
            values[i] = value.apply(rows.get(i));
        }
        statement.setArray(parameter, connection.createArrayOf(type, values));
    }

    private static @Nullable String text(@Nullable Object value) {
        return value == null ? null : value.toString();
    }

    private static final String ANALYZE = "analyze (skip_locked) {schema}._private_jobs";

    /** A role that does not own the table gets a warning from the server and goes on. */
    private void analyzeAfter(Connection connection, long added) throws SQLException {
        if (added >= ANALYZE_AFTER) {
            try (PreparedStatement statement = connection.prepareStatement(schema.in(ANALYZE))) {
                statement.execute();
            }
        }
    }
}
