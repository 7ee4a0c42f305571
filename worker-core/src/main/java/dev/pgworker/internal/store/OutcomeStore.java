package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.SqlArrays;
import dev.pgworker.internal.jdbc.SqlRows;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.job.Job;

/**
 * Writes what became of claimed jobs, where the claims still hold them. Each statement is committed before the method returns,
 * unless it is given a connection. None waits for long for a locked row, but {@link #awaitRow}. Thread-safe.
 */
public final class OutcomeStore {

    private final JobSql sql;

    OutcomeStore(JobSql sql) {
        this.sql = sql;
    }

    private static final String COMPLETED = "(?, ?, ?::pg_catalog.timestamptz[], ?, ?::pg_catalog.tid[], ?, ?, ?)";

    private static final String COMPLETE = "select id, outcome from {schema}.pgworker_complete" + COMPLETED;

    private static final String COMPLETE_RECORDED =
            "select c.id, c.outcome from {schema}.pgworker_note_runs(?, ?, ?, ?) n(ids) cross join lateral"
                    + " {schema}.pgworker_complete" + COMPLETED.replace("(?, ?,", "(?, n.ids,") + " c";

    /** Ids in ascending order, and which of few claims is whose: the server takes long to read times. */
    private record Numbered(List<HeldClaim> jobs, List<Instant> claims, List<Integer> numbers) {

        static Numbered of(List<HeldClaim> jobs) {
            Map<Instant, Integer> known = new LinkedHashMap<>();
            List<Integer> numbers = new ArrayList<>(jobs.size());
            @Nullable Instant last = null;
            int number = 0;
            for (HeldClaim job : jobs) {
                if (!job.lockedAt().equals(last)) {
                    last = job.lockedAt();
                    number = known.computeIfAbsent(last, unknown -> known.size() + 1);
                }
                numbers.add(number);
            }
            return new Numbered(jobs, List.copyOf(known.keySet()), numbers);
        }

        int numberOf(@Nullable Instant claim) {
            return claims.indexOf(claim) + 1;
        }

        @Nullable String addresses() {
            return jobs.stream().anyMatch(job -> job.address() == null)
                    ? null
                    : jobs.stream().map(job -> "\"" + job.address() + "\"").collect(Collectors.joining(",", "{", "}"));
        }
    }

    /**
     * Deletes jobs that these claims still hold, and frees queues.
     *
     * @param done in ascending order of the ids; if all have addresses, all are deleted or nothing is done
     * @param over the queues of some of these claims, all of which are freed or nothing is done
     * @param wake whether to wake other workers for them
     * @param runs what the history gets, by the ids of the jobs; empty if none is kept
     * @return what became of those that were not deleted, by their ids
     * @throws SQLException with SQLSTATE 55P03 if nothing was done: call without addresses and queues
     */
    public Map<Long, WriteResult> complete(
            List<HeldClaim> done, List<HeldQueue> over, boolean wake, Map<Long, RunRecord> runs) throws SQLException {
        return sql.call(
                runs.isEmpty() ? COMPLETE : COMPLETE_RECORDED,
                (connection, statement) -> complete(connection, statement, done, over, wake, runs));
    }

    /**
     * Deletes a job that its claim still holds, in the transaction of the given connection and without ending it.
     *
     * @param run what the history gets; null for nothing
     * @return whether it was deleted
     */
    public boolean complete(Connection connection, HeldClaim done, @Nullable RunRecord run) throws SQLException {
        Map<Long, RunRecord> runs = run == null ? Map.of() : Map.of(done.jobId(), run);
        String text = run == null ? COMPLETE : COMPLETE_RECORDED;
        try (PreparedStatement statement = connection.prepareStatement(sql.in(text))) {
            return complete(connection, statement, List.of(done), List.of(), false, runs)
                    .isEmpty();
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

    private Map<Long, WriteResult> complete(
            Connection connection,
            PreparedStatement statement,
            List<HeldClaim> done,
            List<HeldQueue> over,
            boolean wake,
            Map<Long, RunRecord> runs)
            throws SQLException {
        Numbered numbered = Numbered.of(done);
        List<Long> ids = done.stream().map(HeldClaim::jobId).toList();
        int at = 1;
        if (!runs.isEmpty()) {
            statement.setArray(at++, SqlArrays.ids(connection, ids.stream()));
            RunRecords.set(connection, statement, at, ids, runs);
            at += 3;
        }
        statement.setString(at++, sql.workerId());
        if (runs.isEmpty()) {
            statement.setArray(at++, SqlArrays.ids(connection, ids.stream()));
        }
        statement.setString(at++, SqlRows.array(numbered.claims().stream().map(Timestamps::text)));
        statement.setArray(
                at++, connection.createArrayOf("int4", numbered.numbers().toArray()));
        statement.setString(at++, numbered.addresses());
        statement.setArray(at++, SqlArrays.array(connection, "int4", over, HeldQueue::id));
        statement.setArray(at++, SqlArrays.array(connection, "int4", over, one -> numbered.numberOf(one.lockedAt())));
        statement.setBoolean(at, wake);
        return results(statement);
    }

    private static Map<Long, WriteResult> results(PreparedStatement statement) throws SQLException {
        Map<Long, WriteResult> results = new HashMap<>();
        try (ResultSet rows = statement.executeQuery()) {
            while (rows.next()) {
                results.put(rows.getLong(1), WriteResult.of(rows.getString(2)));
            }
        }
        return results;
    }

    private static final String RELEASE = """
            select id, outcome from {schema}.pgworker_release(?, ?::{schema}.pgworker_outcome[])
            """;

    /**
     * Gives jobs up that did not succeed, by their releases, where these claims still hold them. Their queues stay
     * locked.
     *
     * @param releases no job twice
     * @param runs what the history gets, by the ids of the jobs; empty if none is kept
     * @return what has become of each, by its id
     */
    public Map<Long, WriteResult> release(List<Release> releases, RenewedLocks locks, Map<Long, RunRecord> runs)
            throws SQLException {
        return sql.call(RELEASE, (connection, statement) -> {
            statement.setString(1, sql.workerId());
            statement.setString(
                    2,
                    SqlRows.array(releases.stream()
                            .map(release ->
                                    release.row(locks, runs.get(release.claim().jobId())))));
            return results(statement);
        });
    }

    private static final String FREE = """
            select pg_catalog.unnest({schema}.pgworker_free_queues(?, array[?], ?::pg_catalog.timestamptz[]))
            """;

    /**
     * Frees queues that this worker has locked, and wakes workers for them.
     *
     * @return the ids of those that could not be freed, because their rows are locked for the moment
     */
    public Set<Integer> free(List<HeldQueue> queues) throws SQLException {
        return sql.call(FREE, (connection, statement) -> {
            statement.setArray(1, SqlArrays.array(connection, "int4", queues, HeldQueue::id));
            statement.setString(2, sql.workerId());
            statement.setArray(3, SqlArrays.times(connection, queues, HeldQueue::lockedAt));
            Set<Integer> left = new HashSet<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    left.add(rows.getInt(1));
                }
            }
            return left;
        });
    }

    private static final String WAKE = """
            select {schema}.pgworker_wake(1, null, '')
            """;

    /** Wakes workers because queues have been freed. */
    public void wake() throws SQLException {
        sql.call(WAKE, (connection, statement) -> statement.execute());
    }

    private static final String WRITE_NOTHING = """
            with deleted as (delete from {schema}._private_jobs where id = -1),
            updated as (update {schema}._private_jobs set locked_at = null, locked_by = null where id = -2)
            select
            """;

    /** Does to no job what writes of outcomes do; where that succeeds, it is the rows of jobs that keep these from it. */
    public void writeNothing() throws SQLException {
        complete(List.of(), List.of(), false, Map.of());
        release(List.of(), RenewedLocks.UNCHANGED, Map.of());
        sql.call(WRITE_NOTHING, (connection, statement) -> statement.execute());
    }
}
