package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.SqlArrays;
import dev.pgworker.job.Job;

/**
 * Writes what became of claimed jobs, where the claims still hold them. Each statement is committed before the method returns,
 * unless it is given a connection. Thread-safe.
 */
public final class OutcomeStore {

    private final JobSql sql;

    OutcomeStore(JobSql sql) {
        this.sql = sql;
    }

    private static final String COMPLETE = "select outcome, " + ClaimedRows.COLUMNS
            + " from {schema}.pgworker_complete(worker_id => ?, job_ids => ?, claims => ?, claim_numbers => ?,"
            + " task_ids => ?, wanted => ?, forbidden => ?, aheads => ?, going_on => ?, addresses => ?::pg_catalog.tid[], renewals => ?, most_bytes => ?, "
            + QueueStart.ARGUMENTS + ")";

    private static final String COMPLETE_RECORDED = recorded(COMPLETE, "pgworker_complete");

    private static String recorded(String sql, String function) {
        String recorded = sql.replace(function + "(", function + "_recorded(").stripTrailing();
        return recorded.substring(0, recorded.length() - 1) + ", " + RunRecords.ARGUMENTS + ")";
    }

    /**
     * Deletes the jobs that these claims still hold, and goes on as the follow-up says.
     *
     * @param done no job twice; faster in ascending order of their ids
     */
    public Completion complete(List<Job> done, FollowUp next, RenewedLocks locks) throws SQLException {
        return complete(done, next, locks, Map.of());
    }

    /**
     * As {@link #complete(List, FollowUp, RenewedLocks)}, and tells the history of the runs.
     *
     * @param runs by the ids of the jobs; empty if none is kept
     */
    public Completion complete(List<Job> done, FollowUp next, RenewedLocks locks, Map<Long, RunRecord> runs)
            throws SQLException {
        return sql.call(
                runs.isEmpty() ? COMPLETE : COMPLETE_RECORDED,
                (connection, statement) -> complete(connection, statement, done, next, locks, runs));
    }

    /**
     * As {@link #complete(List, FollowUp, RenewedLocks)}, in the transaction of the given connection and without ending it.
     *
     * @param run what to tell the history; null for nothing
     */
    public Completion complete(
            Connection connection, Job done, FollowUp next, RenewedLocks locks, @Nullable RunRecord run)
            throws SQLException {
        Map<Long, RunRecord> runs = run == null ? Map.of() : Map.of(done.id(), run);
        String text = run == null ? COMPLETE : COMPLETE_RECORDED;
        try (PreparedStatement statement = connection.prepareStatement(sql.in(text))) {
            return complete(connection, statement, List.of(done), next, locks, runs);
        }
    }

    private static final String AWAIT_ROW = """
            select id from {schema}._private_jobs where id = ? for update
            """;

    /** Waits, in the transaction of the given connection, until no other transaction changes the job's row. */
    public void awaitRow(Connection connection, Job job) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql.in(AWAIT_ROW))) {
            statement.setLong(1, job.id());
            statement.executeQuery().close();
        }
    }

    private Completion complete(
            Connection connection,
            PreparedStatement statement,
            List<Job> done,
            FollowUp next,
            RenewedLocks locks,
            Map<Long, RunRecord> runs)
            throws SQLException {
        LanePlan lanes = next.lanes();
        int wanted = lanes.wanted();
        statement.setString(1, sql.workerId());
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
        statement.setString(10, sql.addresses().textOf(done));
        statement.setArray(11, SqlArrays.times(connection, done, job -> locks.pending(Claim.of(job))));
        statement.setLong(12, next.mostBytes());
        QueueStart.set(statement, 13, next.queueStart());
        if (!runs.isEmpty()) {
            RunRecords.set(connection, statement, 17, done.stream().map(Job::id).toList(), runs);
        }
        Completion completion = new Completion(new Claimed(), new HashMap<>());
        try (ResultSet rows = statement.executeQuery()) {
            ClaimedRows reader = new ClaimedRows(sql, next.tasks(), 2);
            while (rows.next()) {
                String outcome = rows.getString(1);
                if (outcome.equals("claimed")) {
                    boolean unused = reader.read(rows, completion.claimed());
                } else {
                    completion.unwritten().put(rows.getLong(2), WriteResult.of(outcome));
                }
            }
        }
        // None is known twice: a job that is claimed again lies elsewhere.
        done.forEach(job -> sql.addresses().forget(job.id()));
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

    private static final String RELEASE_RECORDED = recorded(RELEASE, "pgworker_release");

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
        return release(releases, goingOn, locks, queueStart, Map.of());
    }

    /**
     * As {@link #release(List, List, RenewedLocks, QueueStart)}, and tells the history of the runs.
     *
     * @param runs by the ids of the jobs; empty if none is kept
     */
    public Map<Long, WriteResult> release(
            List<Release> releases,
            List<Long> goingOn,
            RenewedLocks locks,
            @Nullable QueueStart queueStart,
            Map<Long, RunRecord> runs)
            throws SQLException {
        return sql.call(runs.isEmpty() ? RELEASE : RELEASE_RECORDED, (connection, statement) -> {
            statement.setString(1, sql.workerId());
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
            if (!runs.isEmpty()) {
                List<Long> ids = releases.stream().map(r -> r.claim().jobId()).toList();
                RunRecords.set(connection, statement, 17, ids, runs);
            }
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
        complete(List.of(), new FollowUp(TaskIds.NONE, LanePlan.NONE, 1, List.of()), RenewedLocks.UNCHANGED);
        release(List.of(), List.of(), RenewedLocks.UNCHANGED, null);
        sql.call(WRITE_NOTHING, (connection, statement) -> statement.execute());
    }

    private static final String FREE = """
            select {schema}.pgworker_free(worker_id => ?, queue_names => ?, locked_ats => ?)
            """;

    /** Frees queues of which this worker has no job. */
    public void free(Collection<String> queueNames) throws SQLException {
        sql.call(FREE, (connection, statement) -> {
            statement.setString(1, sql.workerId());
            statement.setArray(2, connection.createArrayOf("text", queueNames.toArray()));
            statement.setArray(3, null);
            return statement.execute();
        });
    }

    /** Frees queues that this worker still has locked since the given times. */
    public void free(List<HeldQueue> queues) throws SQLException {
        sql.call(FREE, (connection, statement) -> {
            statement.setString(1, sql.workerId());
            statement.setArray(2, SqlArrays.array(connection, "text", queues, HeldQueue::name));
            statement.setArray(3, SqlArrays.times(connection, queues, HeldQueue::lockedAt));
            return statement.execute();
        });
    }

    private static final String TELL_OF_DUE = """
            select {schema}.pgworker_wake({schema}.pgworker_due_queues(
              array(select q.id from {schema}._private_job_queues q where q.queue_name = any(?)), ?, ?, ?, ?), null, '')
            """;

    /**
     * Wakes workers for the jobs of these queues that are due.
     *
     * @param start where to look for them; null for everywhere
     */
    public void tellOfDue(Collection<String> queueNames, @Nullable QueueStart start) throws SQLException {
        sql.call(TELL_OF_DUE, (connection, statement) -> {
            statement.setArray(1, SqlArrays.texts(connection, queueNames));
            QueueStart.set(statement, 2, start);
            return statement.execute();
        });
    }
}
