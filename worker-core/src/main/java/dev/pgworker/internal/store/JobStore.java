package dev.pgworker.internal.store;

import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.ToIntFunction;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

import dev.pgworker.internal.jdbc.AnswerLimit;
import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.SqlArrays;
import dev.pgworker.internal.jdbc.StatementCall;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.job.Job;
import dev.pgworker.schema.WorkerSchema;

/**
 * The statements of one worker: claim, complete, release, and when to look again.
 *
 * <p>Each method takes a connection of its own from the pool and commits before it returns. Called by the fetch and the
 * completion thread at the same time; the only state they share is the immutable {@link TaskIds} given to each call.
 */
public final class JobStore {

    /** Far more than any of these statements usually takes, and little for whoever waits after a failover. */
    private static final Duration USUAL_LIMIT = Duration.ofSeconds(10);

    /** For a statement that needs more: less than an operator waits. */
    private static final Duration LONGEST_LIMIT = Duration.ofSeconds(60);

    private final DataSource dataSource;
    private final WorkerSchema schema;
    private final String workerId;
    private final AnswerLimit answerLimit;
    private final RowAddresses addresses = new RowAddresses();

    /** The claims that are under way. */
    private final Set<Statement> claiming = ConcurrentHashMap.newKeySet();

    /** The claims that were to be cancelled. */
    private final Set<Statement> cancelled = ConcurrentHashMap.newKeySet();

    /** Creates the store of the worker with this id. */
    public JobStore(DataSource dataSource, WorkerSchema schema, String workerId) {
        this(dataSource, schema, workerId, new AnswerLimit(USUAL_LIMIT, LONGEST_LIMIT));
    }

    JobStore(DataSource dataSource, WorkerSchema schema, String workerId, AnswerLimit answerLimit) {
        this.dataSource = dataSource;
        this.schema = schema;
        this.workerId = workerId;
        this.answerLimit = answerLimit;
    }

    private static final String TASK_IDS = """
            select identifier, id from {schema}.pgworker_task_ids(?)
            """;

    /** Looks up the ids of the given tasks and creates those that do not exist. */
    public TaskIds tasks(Collection<String> identifiers) throws SQLException {
        return call(TASK_IDS, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("text", identifiers.toArray()));
            Map<Integer, String> tasks = new HashMap<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    tasks.put(rows.getInt(2), rows.getString(1));
                }
            }
            return new TaskIds(tasks);
        });
    }

    /** Times that are those before are left out: a driver that makes dates of all would have a third of a claim's work with them. */
    private static final String JOB_COLUMNS = """
            id, queue_name, task_id, payload, priority, run_at, attempts, max_attempts, last_error,
            case when created_at operator(pg_catalog.<>) run_at then created_at end,
            case when updated_at operator(pg_catalog.<>) created_at then updated_at end,
            key, revision, flags, address, locked_at""";

    private static final String QUEUE_START = "lane_queues => ?, lane_levels => ?, lane_run_ats => ?, lane_ids => ?";

    private static final String CLAIM = "select " + JOB_COLUMNS
            + " from {schema}.pgworker_claim(worker_id => ?, task_ids => ?, wanted => ?, forbidden => ?, runs => ?,"
            + " levels => ?, floor_run_ats => ?, floor_ids => ?, strays => ?, wide => ?, most_bytes => ?, parity => ?,"
            + " unqueued_task_ids => ?, " + QUEUE_START + ")";

    private static final String CLAIM_CAREFULLY = "select " + JOB_COLUMNS + ", refusal, refusal_state, queue_id"
            + " from {schema}.pgworker_claim_carefully(worker_id => ?, task_ids => ?, wanted => ?, forbidden => ?,"
            + " passed_jobs => ?, passed_queues => ?, most_bytes => ?, passed_tasks => ?, " + QUEUE_START + ")";

    /** For a job whose payload cannot be read. */
    private static final String CLAIM_WITHOUT_PAYLOAD = CLAIM_CAREFULLY.replace(" payload,", " null as payload,");

    /**
     * Claims due jobs, one of a queue, and passes over those that cannot be claimed, because of a trigger of somebody's for
     * instance. Takes longer than {@link #claim}, a second at most, and may leave jobs behind.
     *
     * @param wanted how many jobs at most
     * @param mostBytes how many bytes their payloads may have together; a single job may have more
     * @param withPayload whether to read the payload; without it the job has the payload {@code null}
     * @param queueStart as in {@link ClaimRequest}
     */
    public CarefullyClaimed claimCarefully(
            TaskIds tasks,
            int wanted,
            long mostBytes,
            Collection<String> forbidden,
            PassedOver passedOver,
            boolean withPayload,
            @Nullable QueueStart queueStart)
            throws SQLException {
        return call(withPayload ? CLAIM_CAREFULLY : CLAIM_WITHOUT_PAYLOAD, (connection, statement) -> {
            statement.setString(1, workerId);
            statement.setArray(2, connection.createArrayOf("int4", tasks.ids()));
            statement.setInt(3, wanted);
            statement.setArray(4, SqlArrays.texts(connection, forbidden));
            statement.setArray(5, SqlArrays.ids(connection, passedOver.jobIds().stream()));
            statement.setArray(
                    6, connection.createArrayOf("int4", passedOver.queueIds().toArray()));
            statement.setLong(7, mostBytes);
            statement.setArray(8, connection.createArrayOf("int4", tasks.ids(passedOver.tasks())));
            QueueStart.set(statement, 9, queueStart);
            List<Refused> refused = new ArrayList<>();
            Claimed claimed = claimed(statement, tasks, rows -> {
                String reason = rows.getString(17);
                if (reason != null) {
                    refused.add(new Refused(
                            rows.getLong(1),
                            tasks.nameOf(rows.getInt(3)),
                            rows.getString(2),
                            rows.getObject(19, Integer.class),
                            reason,
                            rows.getString(18)));
                }
                return reason != null;
            });
            return new CarefullyClaimed(claimed, refused);
        });
    }

    /** Claims due jobs. Ends with an exception, and claims nothing, when {@link #cancelClaims} is called meanwhile. */
    public Claimed claim(TaskIds tasks, ClaimRequest request) throws SQLException {
        return call(CLAIM, (connection, statement) -> {
            Integer[] ids = tasks.ids();
            ClaimStart start = request.start();
            statement.setString(1, workerId);
            statement.setArray(2, connection.createArrayOf("int4", ids));
            statement.setInt(3, request.wanted());
            statement.setArray(4, SqlArrays.texts(connection, request.forbidden()));
            statement.setArray(5, runs(connection, tasks, ids, request.runs()));
            statement.setArray(6, start == null ? null : connection.createArrayOf("int4", start.levels()));
            statement.setArray(7, start == null ? null : start.runAts(connection));
            statement.setArray(8, start == null ? null : start.ids(connection));
            statement.setArray(
                    9,
                    start == null || start.strays().isEmpty()
                            ? null
                            : SqlArrays.ids(connection, start.strays().stream()));
            statement.setBoolean(10, request.wide());
            statement.setLong(11, request.mostBytes());
            statement.setObject(12, request.chain().parity, Types.INTEGER);
            statement.setArray(
                    13, tasks.onlyQueued().isEmpty() ? null : connection.createArrayOf("int4", tasks.unqueuedIds()));
            QueueStart.set(statement, 14, request.queueStart());
            return claimed(statement, tasks, rows -> false);
        });
    }

    /** Takes the present row, if it is no job that has been claimed; returns whether it has. */
    @FunctionalInterface
    private interface OtherRows {
        boolean take(ResultSet rows) throws SQLException;
    }

    private Claimed claimed(PreparedStatement statement, TaskIds tasks, OtherRows others) throws SQLException {
        claiming.add(statement);
        try (ResultSet rows = statement.executeQuery()) {
            Claimed claimed = new Claimed();
            Rows reader = new Rows(tasks, 1);
            boolean cut = false;
            while (rows.next()) {
                if (!others.take(rows)) {
                    cut |= !reader.read(rows, claimed);
                }
            }
            return new Claimed(claimed.jobs(), claimed.unreadable(), cut, reader.lockedAt, reader.passedOver);
        } finally {
            claiming.remove(statement);
            cancelled.remove(statement);
        }
    }

    /**
     * Ends the claims that are under way, which may wait for a lock. May be called from any thread; opens connections. The first
     * time may come before the server has the statement, and the driver cancels a statement only once: call again.
     *
     * @return whether there were any
     */
    public boolean cancelClaims() throws SQLException {
        boolean any = false;
        for (Statement statement : claiming) {
            any = true;
            if (cancelled.add(statement)) {
                statement.cancel();
            } else {
                statement.getConnection().unwrap(PGConnection.class).cancelQuery();
            }
        }
        return any;
    }

    private static @Nullable Array runs(
            Connection connection, TaskIds tasks, Integer[] taskIds, ToIntFunction<String> runOfTask)
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
            + " from {schema}.pgworker_complete(worker_id => ?, job_ids => ?, claims => ?, claim_numbers => ?,"
            + " task_ids => ?, wanted => ?, forbidden => ?, aheads => ?, going_on => ?, addresses => ?::pg_catalog.tid[], renewals => ?, most_bytes => ?, "
            + QUEUE_START + ")";

    /**
     * Deletes the jobs that these claims still hold, and goes on as the continuation says.
     *
     * @param done no job twice; faster in ascending order of their ids
     */
    public Completion complete(List<Job> done, FollowUp next, RenewedLocks locks) throws SQLException {
        return call(COMPLETE, (connection, statement) -> complete(connection, statement, done, next, locks));
    }

    /**
     * As {@link #complete(List, FollowUp, RenewedLocks)}, in the transaction of the given connection and without ending it.
     */
    public Completion complete(Connection connection, Job done, FollowUp next, RenewedLocks locks) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(COMPLETE))) {
            return complete(connection, statement, List.of(done), next, locks);
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
            Connection connection, PreparedStatement statement, List<Job> done, FollowUp next, RenewedLocks locks)
            throws SQLException {
        Lanes lanes = next.lanes();
        int wanted = lanes.wanted();
        statement.setString(1, workerId);
        statement.setArray(2, SqlArrays.ids(connection, done.stream().map(Job::id)));
        setClaims(connection, statement, done, locks);
        statement.setArray(5, connection.createArrayOf("int4", next.tasks().ids()));
        statement.setInt(6, wanted);
        statement.setArray(7, wanted == 0 ? null : SqlArrays.texts(connection, next.forbidden()));
        statement.setArray(
                8,
                lanes.aheads().isEmpty()
                        ? null
                        : connection.createArrayOf("int4", lanes.aheads().toArray(Integer[]::new)));
        statement.setArray(9, lanes.goingOn().isEmpty() ? null : SqlArrays.ids(connection, lanes.goingOn().stream()));
        statement.setString(10, addresses(done));
        statement.setArray(11, SqlArrays.times(connection, done, job -> locks.pending(Claim.of(job))));
        statement.setLong(12, next.mostBytes());
        QueueStart.set(statement, 13, next.queueStart());
        Completion completion = new Completion(new Claimed(), new HashMap<>());
        try (ResultSet rows = statement.executeQuery()) {
            Rows reader = new Rows(next.tasks(), 2);
            while (rows.next()) {
                String outcome = rows.getString(1);
                if (outcome.equals("claimed")) {
                    boolean unused = reader.read(rows, completion.claimed());
                } else {
                    completion.unwritten().put(rows.getLong(2), WriteResult.of(outcome));
                    addresses.forget(rows.getLong(2));
                }
            }
        }
        return completion;
    }

    /** A group consists of few claims, whose times take the server longer to read than their numbers. */
    private static void setClaims(
            Connection connection, PreparedStatement statement, List<Job> jobs, RenewedLocks locks)
            throws SQLException {
        Map<Instant, Integer> numbers = new LinkedHashMap<>();
        Integer[] ofJobs = new Integer[jobs.size()];
        @Nullable Instant last = null;
        for (int i = 0; i < ofJobs.length; i++) {
            Instant time = locks.current(Claim.of(jobs.get(i)));
            ofJobs[i] =
                    time.equals(last) ? ofJobs[i - 1] : numbers.computeIfAbsent(time, unknown -> numbers.size() + 1);
            last = time;
        }
        statement.setArray(3, SqlArrays.times(connection, List.copyOf(numbers.keySet()), time -> time));
        statement.setArray(4, numbers.size() == 1 ? null : connection.createArrayOf("int4", ofJobs));
    }

    private static final String RELEASE = """
            select id, outcome from {schema}.pgworker_release(worker_id => ?, job_ids => ?, claims => ?, actions => ?, delays => ?,
              run_ats => ?, errors => ?, keys => ?, attempts => ?, payloads => ?, going_on => ?, renewals => ?,
              lane_queues => ?, lane_levels => ?, lane_run_ats => ?, lane_ids => ?)
            """;

    /**
     * Gives jobs up that did not succeed, as each release says, where these claims still hold them, and frees the queues that
     * do not go on.
     *
     * @param releases no job twice
     * @param queueStart as in {@link ClaimRequest}
     * @return what has become of each, by its id
     */
    public Map<Long, WriteResult> release(
            List<Release> releases, List<Long> goingOn, RenewedLocks locks, @Nullable QueueStart queueStart)
            throws SQLException {
        return call(RELEASE, (connection, statement) -> {
            statement.setString(1, workerId);
            statement.setArray(
                    2,
                    SqlArrays.ids(
                            connection, releases.stream().map(r -> r.claim().jobId())));
            statement.setArray(3, SqlArrays.times(connection, releases, r -> locks.current(r.claim())));
            statement.setArray(4, SqlArrays.array(connection, "text", releases, r -> r.action().sqlName));
            statement.setArray(5, SqlArrays.array(connection, "float8", releases, Release::delaySeconds));
            statement.setArray(6, SqlArrays.times(connection, releases, Release::runAt));
            statement.setArray(7, SqlArrays.array(connection, "text", releases, Release::error));
            statement.setArray(8, SqlArrays.array(connection, "text", releases, Release::key));
            statement.setArray(9, SqlArrays.array(connection, "int4", releases, Release::attempts));
            statement.setArray(10, SqlArrays.array(connection, "text", releases, Release::payload));
            statement.setArray(11, goingOn.isEmpty() ? null : SqlArrays.ids(connection, goingOn.stream()));
            statement.setArray(12, SqlArrays.times(connection, releases, r -> locks.pending(r.claim())));
            QueueStart.set(statement, 13, queueStart);
            Map<Long, WriteResult> outcomes = new HashMap<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    outcomes.put(rows.getLong(1), WriteResult.of(rows.getString(2)));
                }
            }
            return outcomes;
        });
    }

    private static final String WRITE_NOTHING = """
            with deleted as (delete from {schema}._private_jobs where id = -1),
            updated as (update {schema}._private_jobs set locked_at = null, locked_by = null where id = -2)
            select
            """;

    /** Does to no job what writes of outcomes do; where that succeeds, it is the rows of jobs that keep these from it. */
    public void writeNothing() throws SQLException {
        complete(List.of(), new FollowUp(TaskIds.NONE, Lanes.NONE, 1, List.of()), RenewedLocks.UNCHANGED);
        release(List.of(), List.of(), RenewedLocks.UNCHANGED, null);
        call(WRITE_NOTHING, (connection, statement) -> statement.execute());
    }

    private static final String FREE = """
            select {schema}.pgworker_free(worker_id => ?, queue_names => ?, locked_ats => ?)
            """;

    /** Frees queues of which this worker has no job. */
    public void free(Collection<String> queueNames) throws SQLException {
        call(FREE, (connection, statement) -> {
            statement.setString(1, workerId);
            statement.setArray(2, connection.createArrayOf("text", queueNames.toArray()));
            statement.setArray(3, null);
            return statement.execute();
        });
    }

    /** Frees queues that this worker still has locked since the given times. */
    public void free(List<HeldQueue> queues) throws SQLException {
        call(FREE, (connection, statement) -> {
            statement.setString(1, workerId);
            statement.setArray(2, SqlArrays.array(connection, "text", queues, HeldQueue::name));
            statement.setArray(3, SqlArrays.times(connection, queues, HeldQueue::lockedAt));
            return statement.execute();
        });
    }

    private static final String HELD = """
            select j.id, j.locked_at, j.key, q.queue_name
            from {schema}._private_jobs j
            left join {schema}._private_job_queues q on q.id = j.job_queue_id
            where j.locked_by = ?::pg_catalog.text
            """;

    /**
     * Reads which jobs this worker holds. Reads the whole table, and takes no lock.
     *
     * @param limit how long the database may take
     */
    public List<HeldJob> held(Duration limit) throws SQLException {
        return Connections.call(dataSource, schema.in(HELD), limit, (connection, statement) -> {
            statement.setString(1, workerId);
            List<HeldJob> held = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    Claim claim = new Claim(rows.getLong(1), Timestamps.instant(rows, 2));
                    held.add(new HeldJob(claim, rows.getString(3), rows.getString(4)));
                }
            }
            return held;
        });
    }

    private static final String STILL_HELD = """
            select g.id, j.locked_at
            from pg_catalog.unnest(?::bigint[]) g(id)
            join {schema}._private_jobs j on j.id = g.id and j.locked_by = ?::pg_catalog.text
            """;

    /** Returns those of the claims by which this worker still holds their jobs. */
    public Set<Claim> stillHeld(Collection<Claim> claims, RenewedLocks locks) throws SQLException {
        return call(STILL_HELD, (connection, statement) -> {
            statement.setArray(1, SqlArrays.ids(connection, claims.stream().map(Claim::jobId)));
            statement.setString(2, workerId);
            Map<Long, Instant> times = new HashMap<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    times.put(rows.getLong(1), Timestamps.instant(rows, 2));
                }
            }
            Set<Claim> held = new HashSet<>();
            for (Claim claim : claims) {
                Instant lockedAt = times.get(claim.jobId());
                if (lockedAt != null && locks.get(claim).has(lockedAt)) {
                    held.add(claim);
                }
            }
            return held;
        });
    }

    private static final String RENEW = """
            select {schema}.pgworker_renew(worker_id => ?, job_ids => ?, claims => ?, renewals => ?)
            """;

    /**
     * Gives the locks of these claims, and of their queues, their pending times, as far as the worker still holds them and
     * nobody else has locked their rows.
     *
     * @return the ids of the jobs whose locks have these times
     */
    public Set<Long> renew(List<Claim> claims, RenewedLocks locks) throws SQLException {
        return call(RENEW, (connection, statement) -> {
            statement.setString(1, workerId);
            statement.setArray(2, SqlArrays.ids(connection, claims.stream().map(Claim::jobId)));
            statement.setArray(3, SqlArrays.times(connection, claims, locks::current));
            statement.setArray(4, SqlArrays.times(connection, claims, locks::pending));
            Set<Long> renewed = new HashSet<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    renewed.add(rows.getLong(1));
                }
            }
            return renewed;
        });
    }

    private static final String HELD_QUEUES = """
            select queue_name, locked_at from {schema}._private_job_queues where locked_by = ?::pg_catalog.text
            """;

    /**
     * Reads which queues this worker has locked. Reads the whole table of queues, and takes no lock.
     *
     * @param limit how long the database may take
     */
    public List<HeldQueue> heldQueues(Duration limit) throws SQLException {
        return Connections.call(dataSource, schema.in(HELD_QUEUES), limit, (connection, statement) -> {
            statement.setString(1, workerId);
            List<HeldQueue> queues = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    queues.add(new HeldQueue(rows.getString(1), Timestamps.instant(rows, 2)));
                }
            }
            return queues;
        });
    }

    private static final String WAITS = """
            select {schema}.pgworker_waits(task_ids => ?, forbidden => ?, longer_than => ?::double precision * interval '1 second')
            """;

    /** Returns whether a job that this worker may run has been due for longer than that. */
    public boolean waits(TaskIds tasks, Collection<String> forbidden, Duration longerThan) throws SQLException {
        return call(WAITS, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("int4", tasks.unqueuedIds()));
            statement.setArray(2, SqlArrays.texts(connection, forbidden));
            statement.setDouble(3, longerThan.toNanos() / 1e9);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getBoolean(1);
            }
        });
    }

    private static final String NEXT_DUE = """
            select {schema}.pgworker_next_due(task_ids => ?, elapsed => ?, levels => ?, lane_levels => ?)
            """;

    /**
     * Returns how long it takes, by the database's clock, until the next job of these tasks is due that was not due yet
     * at a moment in the past: negative if it fell due since, null if there is none.
     *
     * @param elapsed the time since that moment, which should lie just before the last claim
     * @param levels the priorities of jobs without a queue to look at; null to look at all
     */
    public @Nullable Duration nextDue(TaskIds tasks, Duration elapsed, @Nullable Collection<Integer> levels)
            throws SQLException {
        return nextDue(tasks, elapsed, levels, null);
    }

    /**
     * As {@link #nextDue(TaskIds, Duration, Collection)}.
     *
     * @param queueLevels the priorities of jobs of queues to look at; null to look at all
     */
    public @Nullable Duration nextDue(
            TaskIds tasks,
            Duration elapsed,
            @Nullable Collection<Integer> levels,
            @Nullable Collection<Integer> queueLevels)
            throws SQLException {
        return this.<@Nullable Duration>call(NEXT_DUE, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("int4", tasks.ids()));
            statement.setDouble(2, elapsed.toNanos() / 1e9);
            statement.setArray(
                    3, levels == null ? null : connection.createArrayOf("int4", levels.toArray(Integer[]::new)));
            statement.setArray(
                    4,
                    queueLevels == null ? null : connection.createArrayOf("int4", queueLevels.toArray(Integer[]::new)));
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                double seconds = row.getDouble(1);
                return row.wasNull() ? null : Duration.ofNanos((long) Math.min(seconds * 1e9, 1e18));
            }
        });
    }

    private static final String DUE_TIMES = """
            select level, seconds from {schema}.pgworker_due_times(task_ids => ?, since => ?::pg_catalog.timestamptz, levels => ?)
            """;

    /**
     * As {@link #nextDue}, for each of these priorities, and for jobs without a queue alone.
     *
     * @param since the moment in the past
     * @return the priorities at which a job is to become due
     */
    public Map<Integer, Duration> dueTimes(TaskIds tasks, Instant since, Collection<Integer> levels)
            throws SQLException {
        return call(DUE_TIMES, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("int4", tasks.ids()));
            statement.setString(2, Timestamps.text(since));
            statement.setArray(3, connection.createArrayOf("int4", levels.toArray(Integer[]::new)));
            Map<Integer, Duration> due = new HashMap<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    due.put(rows.getInt(1), Duration.ofNanos((long) Math.min(rows.getDouble(2) * 1e9, 1e18)));
                }
            }
            return due;
        });
    }

    private static final String LOOK_BELOW = """
            select levels, strays from {schema}.pgworker_look_below(
              task_ids => ?, forbidden => ?, floor_levels => ?, floor_run_ats => ?, floor_ids => ?, most_levels => ?, most_strays => ?)
            """;

    /**
     * Looks for what claims pass over that begin so. Takes long where much is left of finished jobs.
     *
     * @param forbidden flags whose jobs are passed over
     */
    public FloorScan lookBelow(
            TaskIds tasks, Collection<String> forbidden, ClaimStart start, int mostLevels, int mostStrays)
            throws SQLException {
        return call(LOOK_BELOW, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("int4", tasks.unqueuedIds()));
            statement.setArray(2, SqlArrays.texts(connection, forbidden));
            statement.setArray(3, connection.createArrayOf("int4", start.levels()));
            statement.setArray(4, start.runAts(connection));
            statement.setArray(5, start.ids(connection));
            statement.setInt(6, mostLevels);
            statement.setInt(7, mostStrays);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return new FloorScan(List.of((Integer[]) row.getArray(1).getArray()), List.of((Long[])
                        row.getArray(2).getArray()));
            }
        });
    }

    private static final String LOOK_AT_QUEUES =
            "select queue_id, queue_name, level, run_at, id from {schema}.pgworker_look_at_queues("
                    + "task_ids => ?, forbidden => ?, most_levels => ?, most_lanes => ?, " + QUEUE_START + ")";

    /**
     * Looks for where the jobs of queues are. Without floors to begin from it takes long where much is left of finished jobs.
     *
     * @param forbidden flags whose jobs are passed over by claims
     * @param mostLanes how many queues may have floors of their own
     * @param from where to begin; null for the first entry
     * @return floors below which there are no jobs, or none that are not below those to begin from; null if there are too many priorities
     */
    public @Nullable QueueStart lookAtQueues(
            TaskIds tasks, Collection<String> forbidden, int mostLevels, int mostLanes, @Nullable QueueStart from)
            throws SQLException {
        return this.<@Nullable QueueStart>call(LOOK_AT_QUEUES, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("int4", tasks.ids()));
            statement.setArray(2, SqlArrays.texts(connection, forbidden));
            statement.setInt(3, mostLevels);
            statement.setInt(4, mostLanes);
            QueueStart.set(statement, 5, from);
            List<QueueStart.Floor> floors = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    if (rows.getInt(1) < 0) {
                        return null;
                    }
                    Instant runAt = Timestamps.instant(rows, 4);
                    long id = rows.getLong(5);
                    floors.add(new QueueStart.Floor(
                            rows.getInt(1),
                            rows.getString(2),
                            rows.getInt(3),
                            new IndexPosition(runAt, rows.wasNull() ? Long.MIN_VALUE : id)));
                }
            }
            return new QueueStart(floors);
        });
    }

    /** Reads the rows of one answer, all of which have been claimed at the same time. */
    private final class Rows {

        private final TaskIds tasks;
        private final int first;
        private @Nullable Instant lockedAt;
        private @Nullable String passedOver;

        Rows(TaskIds tasks, int first) {
            this.tasks = tasks;
            this.first = first;
        }

        /** Returns false for the row that stands for jobs that have not been claimed. */
        boolean read(ResultSet row, Claimed claimed) throws SQLException {
            long id = row.getLong(first);
            if (row.wasNull()) {
                Instant at = Timestamps.nullableInstant(row, first + 15);
                lockedAt = at == null ? lockedAt : at;
                passedOver = row.getString(first + 1);
                return at != null;
            }
            if (lockedAt == null) {
                lockedAt = Timestamps.instant(row, first + 15);
            }
            try {
                Job job = job(row, id, lockedAt);
                addresses.put(id, row.getString(first + 14));
                // Last: a job is in one list or in the other.
                claimed.jobs().add(job);
            } catch (SQLException | RuntimeException | Error e) {
                claimed.unreadable().add(new Unreadable(unreadable(row, id, lockedAt), e));
            }
            return true;
        }

        private Job job(ResultSet row, long id, Instant lockedAt) throws SQLException {
            int taskId = row.getInt(first + 2);
            String task = tasks.identifiers().get(taskId);
            if (task == null) {
                throw new IllegalStateException(
                        "The database handed out a job of task id " + taskId + ", which this worker did not ask for");
            }
            Instant runAt = Timestamps.instant(row, first + 5);
            Instant createdAt = Timestamps.instant(row, first + 9, runAt);
            return new Job(
                    id,
                    task,
                    Objects.requireNonNullElse(row.getString(first + 3), NO_PAYLOAD),
                    row.getString(first + 1),
                    row.getInt(first + 4),
                    runAt,
                    row.getInt(first + 6),
                    row.getInt(first + 7),
                    row.getString(first + 8),
                    createdAt,
                    Timestamps.instant(row, first + 10, createdAt),
                    row.getString(first + 11),
                    lockedAt,
                    workerId,
                    row.getInt(first + 12),
                    JobRows.flags(row, first + 13));
        }

        /** Reads what it takes to give a job up. */
        private Job unreadable(ResultSet row, long id, Instant lockedAt) throws SQLException {
            int taskId = row.getInt(first + 2);
            return new Job(
                    id,
                    tasks.nameOf(taskId),
                    NO_PAYLOAD,
                    row.getString(first + 1),
                    row.getInt(first + 4),
                    Instant.EPOCH,
                    row.getInt(first + 6),
                    row.getInt(first + 7),
                    null,
                    Instant.EPOCH,
                    Instant.EPOCH,
                    row.getString(first + 11),
                    lockedAt,
                    workerId,
                    row.getInt(first + 12),
                    Set.of());
        }
    }

    private static final String NO_PAYLOAD = "null";

    /** As text, because the driver would ask the database for the number of the type. */
    private @Nullable String addresses(List<Job> jobs) {
        String[] known = jobs.size() <= 1 ? null : addresses.ofAll(jobs);
        return known == null ? null : "{\"" + String.join("\",\"", known) + "\"}";
    }

    private <T extends @Nullable Object> T call(String sql, StatementCall<T> call) throws SQLException {
        return answerLimit.call(dataSource, schema.in(sql), call);
    }
}
