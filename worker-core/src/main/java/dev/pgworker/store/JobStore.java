package dev.pgworker.store;

import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.function.ToIntFunction;
import java.util.stream.Stream;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.ForbiddenFlags;

/**
 * The statements of one worker: claim, complete, release, and when to look again.
 *
 * <p>Each method takes a connection of its own from the pool and commits before it returns. Called by the fetch and the
 * completion thread at the same time; the only state they share is the immutable {@link Tasks} given to each call.
 */
public final class JobStore {

    /** Far more than any of these statements takes, and less than an operator waits. */
    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(60);

    private final DataSource dataSource;
    private final WorkerSchema schema;
    private final String workerId;
    private final ForbiddenFlags forbiddenFlags;
    private final Duration answerLimit;
    private final RowAddresses addresses = new RowAddresses();

    /**
     * Creates the store of the worker with this id.
     *
     * @param forbiddenFlags asked at every claim
     */
    public JobStore(DataSource dataSource, WorkerSchema schema, String workerId, ForbiddenFlags forbiddenFlags) {
        this(dataSource, schema, workerId, forbiddenFlags, ANSWER_LIMIT);
    }

    JobStore(
            DataSource dataSource,
            WorkerSchema schema,
            String workerId,
            ForbiddenFlags forbiddenFlags,
            Duration answerLimit) {
        this.dataSource = dataSource;
        this.schema = schema;
        this.workerId = workerId;
        this.forbiddenFlags = forbiddenFlags;
        this.answerLimit = answerLimit;
    }

    /**
     * The tasks that a worker serves, with the ids they have in the database.
     *
     * @param identifiers the identifier of each id
     */
    public record Tasks(Map<Integer, String> identifiers) {

        /** No tasks. */
        public static final Tasks NONE = new Tasks(Map.of());

        /** Copies the map. */
        public Tasks {
            identifiers = Map.copyOf(identifiers);
        }

        Integer[] ids() {
            return identifiers.keySet().toArray(Integer[]::new);
        }
    }

    private static final String TASK_IDS = """
            select identifier, id from {schema}.pgworker_task_ids(?)
            """;

    /** Looks up the ids of the given tasks and creates those that do not exist. */
    public Tasks tasks(Collection<String> identifiers) throws SQLException {
        return call(TASK_IDS, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("text", identifiers.toArray()));
            Map<Integer, String> tasks = new HashMap<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    tasks.put(rows.getInt(2), rows.getString(1));
                }
            }
            return new Tasks(tasks);
        });
    }

    private static final String JOB_COLUMNS =
            "id, queue_name, task_id, payload, priority, run_at, attempts, max_attempts, last_error, created_at,"
                    + " updated_at, key, revision, flags, address";

    private static final String CLAIM = "select " + JOB_COLUMNS
            + " from {schema}.pgworker_claim(worker_id => ?, task_ids => ?, wanted => ?, forbidden => ?, runs => ?,"
            + " floor_priority => ?, floor_run_at => ?, wide => ?)";

    /**
     * Where a claim begins to look for jobs without a queue that have this priority: earlier ones are passed over.
     *
     * @param runAt when the first job to look at is due
     */
    public record Floor(int priority, Instant runAt) {}

    /**
     * Claims up to {@code wanted} due jobs, in the order in which they are to start.
     *
     * @param runs how many jobs to take of a queue whose first job is of a task with this identifier
     * @param wide whether to look in many queues at once, because each has few jobs
     * @param floor where to begin; null to look at all jobs
     */
    public List<Job> claim(Tasks tasks, int wanted, ToIntFunction<String> runs, boolean wide, @Nullable Floor floor)
            throws SQLException {
        return call(CLAIM, (connection, statement) -> {
            Integer[] ids = tasks.ids();
            statement.setString(1, workerId);
            statement.setArray(2, connection.createArrayOf("int4", ids));
            statement.setInt(3, wanted);
            statement.setArray(4, forbidden(connection));
            statement.setArray(5, runs(connection, tasks, ids, runs));
            statement.setObject(6, floor == null ? null : floor.priority, Types.INTEGER);
            statement.setObject(
                    7, floor == null ? null : floor.runAt.atOffset(ZoneOffset.UTC), Types.TIMESTAMP_WITH_TIMEZONE);
            statement.setBoolean(8, wide);
            try (ResultSet rows = statement.executeQuery()) {
                Instant lockedAt = Instant.now();
                List<Job> jobs = new ArrayList<>();
                while (rows.next()) {
                    jobs.add(job(rows, 1, tasks, lockedAt));
                }
                return jobs;
            }
        });
    }

    private static @Nullable Array runs(
            Connection connection, Tasks tasks, Integer[] taskIds, ToIntFunction<String> runOfTask)
            throws SQLException {
        Integer[] runs = new Integer[taskIds.length];
        boolean allSingle = true;
        for (int i = 0; i < runs.length; i++) {
            runs[i] = runOfTask.applyAsInt(
                    Objects.requireNonNull(tasks.identifiers().get(taskIds[i])));
            allSingle &= runs[i] <= 1;
        }
        return allSingle ? null : connection.createArrayOf("int4", runs);
    }

    private static final String COMPLETE = "select outcome, " + JOB_COLUMNS
            + " from {schema}.pgworker_complete(worker_id => ?, job_ids => ?, task_ids => ?,"
            + " wanted => ?, forbidden => ?, aheads => ?, going_on => ?, addresses => ?)";

    /**
     * Deletes the jobs that this worker still holds, claims the next jobs of their queues as the lanes say, and frees the
     * queues that do not go on.
     *
     * @param done faster in ascending order of their ids
     */
    public Completion complete(List<Job> done, Tasks tasks, Lanes lanes) throws SQLException {
        return call(COMPLETE, (connection, statement) -> complete(connection, statement, done, tasks, lanes));
    }

    /** As {@link #complete(List, Tasks, Lanes)}, in the transaction of the given connection and without ending it. */
    public Completion complete(Connection connection, Job done, Tasks tasks, Lanes lanes) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(COMPLETE))) {
            return complete(connection, statement, List.of(done), tasks, lanes);
        }
    }

    /**
     * What a write of outcomes does with the queues of the jobs.
     *
     * @param aheads how many jobs to claim of the queue of each job, in the order of the jobs; empty for none at all
     * @param goingOn ids of the jobs whose queue stays locked because this worker has more jobs of it
     */
    public record Lanes(List<Integer> aheads, List<Long> goingOn) {

        /** For jobs without queues. */
        public static final Lanes NONE = new Lanes(List.of(), List.of());

        /** Returns these lanes without any claims. */
        public Lanes withoutClaims() {
            return new Lanes(Collections.nCopies(aheads.size(), 0), goingOn);
        }

        private int wanted() {
            return aheads.stream().mapToInt(Integer::intValue).sum();
        }
    }

    private static final String AWAIT_ROW = """
            select id from {schema}._private_jobs where id = ? for update
            """;

    /** Waits, in the transaction of the given connection, until no other transaction changes the job's row. */
    public void awaitRow(Connection connection, Job job) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(AWAIT_ROW))) {
            statement.setLong(1, job.id());
            statement.executeQuery().close();
        }
    }

    private Completion complete(
            Connection connection, PreparedStatement statement, List<Job> done, Tasks tasks, Lanes lanes)
            throws SQLException {
        int wanted = lanes.wanted();
        statement.setString(1, workerId);
        statement.setArray(2, ids(connection, done.stream().map(Job::id)));
        statement.setArray(3, connection.createArrayOf("int4", tasks.ids()));
        statement.setInt(4, wanted);
        statement.setArray(5, wanted == 0 ? null : forbidden(connection));
        statement.setArray(6, lanes.aheads.isEmpty() ? null : connection.createArrayOf("int4", lanes.aheads.toArray()));
        statement.setArray(7, goingOn(connection, lanes));
        statement.setArray(8, addresses(connection, done));
        List<Job> claimed = new ArrayList<>();
        Unwritten unwritten = new Unwritten(new ArrayList<>(), new ArrayList<>());
        try (ResultSet rows = statement.executeQuery()) {
            Instant lockedAt = Instant.now();
            while (rows.next()) {
                String outcome = rows.getString(1);
                if (outcome.equals("claimed")) {
                    claimed.add(job(rows, 2, tasks, lockedAt));
                } else {
                    unwritten.add(rows.getLong(2), outcome);
                    addresses.forget(rows.getLong(2));
                }
            }
        }
        return new Completion(claimed, unwritten);
    }

    private static final String RELEASE = """
            select id, outcome from {schema}.pgworker_release(worker_id => ?, job_ids => ?, actions => ?, delays => ?,
              run_ats => ?, errors => ?, keys => ?, attempts => ?, payloads => ?, going_on => ?)
            """;

    /**
     * Gives jobs up that did not succeed, as each release says, where this worker still holds them, and frees the queues
     * that do not go on.
     */
    public Unwritten release(List<Release> releases, List<Long> goingOn) throws SQLException {
        return call(RELEASE, (connection, statement) -> {
            statement.setString(1, workerId);
            statement.setArray(2, ids(connection, releases.stream().map(Release::jobId)));
            statement.setArray(3, array(connection, "text", releases, r -> r.action.sqlName));
            statement.setArray(4, array(connection, "float8", releases, Release::delaySeconds));
            statement.setArray(5, array(connection, "timestamptz", releases, Release::runAtText));
            statement.setArray(6, array(connection, "text", releases, Release::error));
            statement.setArray(7, array(connection, "text", releases, Release::key));
            statement.setArray(8, array(connection, "int4", releases, Release::attempts));
            statement.setArray(9, array(connection, "text", releases, Release::payload));
            statement.setArray(10, goingOn.isEmpty() ? null : ids(connection, goingOn.stream()));
            Unwritten unwritten = new Unwritten(new ArrayList<>(), new ArrayList<>());
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    unwritten.add(rows.getLong(1), rows.getString(2));
                }
            }
            return unwritten;
        });
    }

    private static final String FREE = """
            select {schema}.pgworker_free(worker_id => ?, queue_names => ?)
            """;

    /** Frees queues of which this worker has no job. */
    public void free(Collection<String> queueNames) throws SQLException {
        call(FREE, (connection, statement) -> {
            statement.setString(1, workerId);
            statement.setArray(2, connection.createArrayOf("text", queueNames.toArray()));
            return statement.execute();
        });
    }

    private static final String HELD = """
            select j.id, j.key, q.queue_name
            from {schema}._private_jobs j
            left join {schema}._private_job_queues q on q.id = j.job_queue_id
            where j.locked_by = ?
            """;

    /** A job that the database says this worker holds. */
    public record Held(
            long id, @Nullable String key, @Nullable String queueName) {}

    /** Reads which jobs this worker holds. Scans the table: for rare occasions. */
    public List<Held> held() throws SQLException {
        return call(HELD, (connection, statement) -> {
            statement.setString(1, workerId);
            List<Held> held = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    held.add(new Held(rows.getLong(1), rows.getString(2), rows.getString(3)));
                }
            }
            return held;
        });
    }

    private static final String HOLDS = """
            select exists (select from {schema}._private_jobs where id = ? and locked_by = ?)
            """;

    /** Returns true if the database says that this worker holds the job. */
    public boolean holds(long jobId) throws SQLException {
        return call(HOLDS, (connection, statement) -> {
            statement.setLong(1, jobId);
            statement.setString(2, workerId);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getBoolean(1);
            }
        });
    }

    private static final String HELD_QUEUES = """
            select queue_name from {schema}._private_job_queues where locked_by = ?
            """;

    /** Reads the names of the queues that this worker has locked. Scans the table: for rare occasions. */
    public List<String> heldQueues() throws SQLException {
        return call(HELD_QUEUES, (connection, statement) -> {
            statement.setString(1, workerId);
            List<String> names = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    names.add(rows.getString(1));
                }
            }
            return names;
        });
    }

    private static final String NEXT_DUE = """
            select {schema}.pgworker_next_due(task_ids => ?, elapsed => ?)
            """;

    /**
     * Returns how long it takes, by the database's clock, until the next job of these tasks is due that was not due yet
     * at a moment in the past: negative if it fell due since, null if there is none.
     *
     * @param elapsed the time since that moment, which should lie just before the last claim
     */
    public @Nullable Duration nextDue(Tasks tasks, Duration elapsed) throws SQLException {
        return this.<@Nullable Duration>call(NEXT_DUE, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("int4", tasks.ids()));
            statement.setDouble(2, elapsed.toNanos() / 1e9);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                double seconds = row.getDouble(1);
                return row.wasNull() ? null : Duration.ofNanos((long) Math.min(seconds * 1e9, 1e18));
            }
        });
    }

    /**
     * What a completion did.
     *
     * @param claimed the next jobs of the queues that became free
     * @param unwritten the jobs that were not deleted
     */
    public record Completion(List<Job> claimed, Unwritten unwritten) {}

    /**
     * The jobs that a write passed over.
     *
     * @param busy ids of jobs that are this worker's, but whose row another transaction has locked: write them again
     * @param lost ids of jobs that are not this worker's any more
     */
    public record Unwritten(List<Long> busy, List<Long> lost) {
        private void add(long id, String outcome) {
            ("busy".equals(outcome) ? busy : lost).add(id);
        }
    }

    /** What becomes of a job that did not succeed. */
    public enum ReleaseAction {
        /** It runs again after a delay, and the attempt counts. */
        RETRY("retry"),
        /** It has failed permanently. */
        FAIL("fail"),
        /** It runs again, and the attempt does not count. */
        BACK("back");

        private final String sqlName;

        ReleaseAction(String sqlName) {
            this.sqlName = sqlName;
        }
    }

    /**
     * A job to give up.
     *
     * @param jobId the id of the job
     * @param key the key that the job had when it was claimed
     * @param attempts the attempts that it had when it was claimed; null to take those in the database
     * @param action what becomes of it
     * @param when when it may run again; null for the usual back-off ({@code RETRY}) or at once ({@code BACK})
     * @param error what to write to {@code last_error}; null to leave it
     * @param payload what to write to {@code payload}; null to leave it
     */
    public record Release(
            long jobId,
            @Nullable String key,
            @Nullable Integer attempts,
            ReleaseAction action,
            @Nullable When when,
            @Nullable String error,
            @Nullable String payload) {

        /** Gives a job up as it was claimed. */
        public static Release of(
                Job job, ReleaseAction action, @Nullable When when, @Nullable String error, @Nullable String payload) {
            return new Release(job.id(), job.key(), job.attempts(), action, when, error, payload);
        }

        /** Returns this release with another error. */
        public Release withError(@Nullable String other) {
            return new Release(jobId, key, attempts, action, when, other, payload);
        }

        private @Nullable Double delaySeconds() {
            return when == null || when.delay == null ? null : when.delay.toNanos() / 1e9;
        }

        private @Nullable String runAtText() {
            return when == null || when.at == null ? null : when.at.toString();
        }
    }

    /**
     * A time in the future: one of the two is set.
     *
     * @param delay the time from the database's present
     * @param at the instant itself
     */
    public record When(@Nullable Duration delay, @Nullable Instant at) {

        /** Returns the time after a delay. */
        public static When in(Duration delay) {
            return new When(delay, null);
        }
    }

    private Job job(ResultSet row, int first, Tasks tasks, Instant lockedAt) throws SQLException {
        int taskId = row.getInt(first + 2);
        String task = tasks.identifiers().get(taskId);
        if (task == null) {
            throw new IllegalStateException(
                    "The database handed out a job of task id " + taskId + ", which this worker did not ask for");
        }
        long id = row.getLong(first);
        addresses.put(id, row.getString(first + 14));
        return new Job(
                id,
                task,
                row.getString(first + 3),
                row.getString(first + 1),
                row.getInt(first + 4),
                JobRows.instant(row, first + 5),
                row.getInt(first + 6),
                row.getInt(first + 7),
                row.getString(first + 8),
                JobRows.instant(row, first + 9),
                JobRows.instant(row, first + 10),
                row.getString(first + 11),
                lockedAt,
                workerId,
                row.getInt(first + 12),
                JobRows.flags(row, first + 13));
    }

    private @Nullable Array forbidden(Connection connection) throws SQLException {
        Collection<String> flags = forbiddenFlags.current();
        return flags.isEmpty() ? null : connection.createArrayOf("text", flags.toArray());
    }

    private @Nullable Array addresses(Connection connection, List<Job> jobs) throws SQLException {
        String[] known = jobs.size() == 1 ? null : addresses.ofAll(jobs);
        return known == null ? null : connection.createArrayOf("tid", known);
    }

    private static @Nullable Array goingOn(Connection connection, Lanes lanes) throws SQLException {
        return lanes.goingOn.isEmpty() ? null : ids(connection, lanes.goingOn.stream());
    }

    private static Array ids(Connection connection, Stream<Long> ids) throws SQLException {
        return connection.createArrayOf("int8", ids.toArray());
    }

    private static Array array(
            Connection connection, String type, List<Release> releases, Function<Release, @Nullable Object> value)
            throws SQLException {
        @Nullable Object[] values = new @Nullable Object[releases.size()];
        for (int i = 0; i < values.length; i++) {
            values[i] = value.apply(releases.get(i));
        }
        return connection.createArrayOf(type, values);
    }

    private <T extends @Nullable Object> T call(String sql, Call<T> call) throws SQLException {
        return Connections.call(dataSource, schema.in(sql), answerLimit, call);
    }

    /** Binds and runs a statement and reads its result. */
    @FunctionalInterface
    interface Call<T extends @Nullable Object> {
        T on(Connection connection, PreparedStatement statement) throws SQLException;
    }
}
