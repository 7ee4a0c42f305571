package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.SqlArrays;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.step.JobStep.Kind;

/** The records of steps of the jobs that one worker runs. Thread-safe. */
public final class StepStore {

    /** Results that are longer are read when they are asked for. */
    private static final int LONGEST_AT_ONCE = 8 * 1024;

    private final JobSql sql;

    StepStore(JobSql sql) {
        this.sql = sql;
    }

    /**
     * What is recorded of a step.
     *
     * @param ended whether it has ended; false while the job waits
     * @param dueAt until when it waits at most; null of other steps
     * @param result JSON; null if there is none, or it is large
     * @param large whether the result has to be read with {@link #result}
     */
    public record Recorded(
            String name,
            Kind kind,
            boolean ended,
            boolean timedOut,
            @Nullable Instant dueAt,
            @Nullable String resultType,
            @Nullable String result,
            boolean large) {}

    /**
     * A step that has ended.
     *
     * @param took how long it took
     * @param result ASCII JSON; null for none
     */
    public record Ended(
            String name,
            Kind kind,
            Duration took,
            @Nullable String resultType,
            @Nullable String result) {}

    /** What has become of a record. */
    public enum Outcome {
        /** It is written, now or by an earlier statement whose answer was lost. */
        WRITTEN,
        /** The worker does not hold the job any more. */
        LOST,
        /** Another claim has recorded a step of that name. */
        TAKEN
    }

    private static final String RECORDED = """
            select s.name, s.kind, s.ended_at is not null, s.timed_out, s.due_at, s.result_type,
              case when pg_catalog.octet_length(s.result::pg_catalog.text) <= {most} then s.result end,
              coalesce(pg_catalog.octet_length(s.result::pg_catalog.text) > {most}, false)
            from {schema}._private_jobs j
            join {schema}.pgworker_steps s on s.job_id = j.id and s.revision = j.revision
            where j.id = ?
            """.replace("{most}", String.valueOf(LONGEST_AT_ONCE));

    /** Reads what is recorded of a job, by the names of its steps. */
    public Map<String, Recorded> recorded(long jobId) throws SQLException {
        return sql.call(RECORDED, (connection, statement) -> {
            statement.setLong(1, jobId);
            Map<String, Recorded> steps = new HashMap<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    steps.put(
                            rows.getString(1),
                            new Recorded(
                                    rows.getString(1),
                                    kind(rows.getString(2)),
                                    rows.getBoolean(3),
                                    rows.getBoolean(4),
                                    Timestamps.nullableInstant(rows, 5),
                                    rows.getString(6),
                                    rows.getString(7),
                                    rows.getBoolean(8)));
                }
            }
            return steps;
        });
    }

    /** Returns the kind that the database calls so. */
    public static Kind kind(String word) {
        return switch (word) {
            case "run" -> Kind.RUN;
            case "transaction" -> Kind.TRANSACTION;
            case "wait" -> Kind.WAIT;
            default -> Kind.SLEEP;
        };
    }

    private static final String RESULT = """
            select s.result
            from {schema}._private_jobs j
            join {schema}.pgworker_steps s on s.job_id = j.id and s.revision = j.revision
            where j.id = ? and s.name = ?
            """;

    /** Reads the recorded result of a step; null if there is none. */
    public @Nullable String result(long jobId, String name) throws SQLException {
        return sql.<@Nullable String>call(RESULT, (connection, statement) -> {
            statement.setLong(1, jobId);
            statement.setString(2, name);
            try (ResultSet row = statement.executeQuery()) {
                return row.next() ? row.getString(1) : null;
            }
        });
    }

    private static final String END = """
            select {schema}.pgworker_end_step(?, ?, ?::pg_catalog.timestamptz[], ?, ?, ?, ?, ?)
            """;

    /** Records a step in a transaction of its own, as far as this claim still holds the job. */
    public Outcome end(Claim claim, RenewedLocks locks, Ended step) throws SQLException {
        return sql.call(END, (connection, statement) -> end(connection, statement, claim, locks, step));
    }

    /** Records a step in the transaction of the given connection, as far as this claim still holds the job. */
    public Outcome end(Connection connection, Claim claim, RenewedLocks locks, Ended step) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql.in(END))) {
            return end(connection, statement, claim, locks, step);
        }
    }

    private Outcome end(Connection connection, PreparedStatement statement, Claim claim, RenewedLocks locks, Ended step)
            throws SQLException {
        setClaim(connection, statement, claim, locks);
        statement.setString(4, step.name);
        statement.setString(5, step.kind == Kind.RUN ? "run" : "transaction");
        statement.setLong(6, step.took.toNanos() / 1_000);
        statement.setString(7, step.resultType);
        statement.setString(8, step.result);
        try (ResultSet row = statement.executeQuery()) {
            row.next();
            return switch (row.getString(1)) {
                case "written" -> Outcome.WRITTEN;
                case "lost" -> Outcome.LOST;
                default -> Outcome.TAKEN;
            };
        }
    }

    /** The first time is that of the claim itself, which stays the same when its lock is renewed. */
    private void setClaim(Connection connection, PreparedStatement statement, Claim claim, RenewedLocks locks)
            throws SQLException {
        RenewedLocks.RowLock lock = locks.get(claim);
        List<Instant> times = Stream.of(
                        claim.lockedAt(), lock.current(), lock.pending() == null ? claim.lockedAt() : lock.pending())
                .toList();
        statement.setString(1, sql.workerId());
        statement.setLong(2, claim.jobId());
        statement.setArray(3, SqlArrays.times(connection, times, time -> time));
    }

    private static final String WAIT = """
            select w.name, w.kind, w.ended_at is not null, w.timed_out, w.due_at, w.result
            from {schema}.pgworker_wait(?, ?, ?::pg_catalog.timestamptz[], ?, ?, ?, ?::pg_catalog.timestamptz) w
            """;

    /**
     * Has a job wait, or continues a wait that has begun, as far as this claim still holds the job.
     *
     * @param signal what it waits for; null for the time alone
     * @param time how long, if it has not begun to wait; null if {@code until} is given
     * @return the step; null if the worker does not hold the job any more
     */
    public @Nullable Recorded await(
            Claim claim,
            RenewedLocks locks,
            String name,
            @Nullable String signal,
            @Nullable Duration time,
            @Nullable Instant until)
            throws SQLException {
        return sql.<@Nullable Recorded>call(WAIT, (connection, statement) -> {
            setClaim(connection, statement, claim, locks);
            statement.setString(4, name);
            statement.setString(5, signal);
            statement.setObject(6, time == null ? null : Timestamps.millis(time) / 1_000);
            statement.setString(7, Timestamps.text(until));
            try (ResultSet row = statement.executeQuery()) {
                if (!row.next() || row.getString(1) == null) {
                    return null;
                }
                return new Recorded(
                        row.getString(1),
                        kind(row.getString(2)),
                        row.getBoolean(3),
                        row.getBoolean(4),
                        Timestamps.nullableInstant(row, 5),
                        null,
                        row.getString(6),
                        false);
            }
        });
    }
}
