package dev.pgworker.internal.store;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.SqlArrays;
import dev.pgworker.internal.jdbc.Timestamps;

/** Which jobs and queues one worker holds by the database. Thread-safe. */
public final class HoldingStore {

    /** A job that this worker holds by the database. */
    public record HeldJob(Claim claim, @Nullable String key) {}

    private final JobSql sql;

    HoldingStore(JobSql sql) {
        this.sql = sql;
    }

    private static final String HELD = """
            select j.id, j.locked_at, j.key from {schema}._private_jobs j where j.locked_by = ?::pg_catalog.text
            """;

    /**
     * Reads which jobs this worker holds. Reads the whole table, and takes no lock.
     *
     * @param limit how long the database may take
     */
    public List<HeldJob> held(Duration limit) throws SQLException {
        return sql.call(HELD, limit, (connection, statement) -> {
            statement.setString(1, sql.workerId());
            List<HeldJob> held = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    Claim claim = new Claim(rows.getLong(1), Timestamps.instant(rows, 2));
                    held.add(new HeldJob(claim, rows.getString(3)));
                }
            }
            return held;
        });
    }

    private static final String LOCKED_AT = """
            select locked_at from {schema}._private_jobs where id = ? and locked_by = ?::pg_catalog.text
            """;

    /** Returns whether this worker still holds the job of this claim by it. */
    public boolean isHeld(Claim claim, RenewedLocks locks) throws SQLException {
        return sql.call(LOCKED_AT, (connection, statement) -> {
            statement.setLong(1, claim.jobId());
            statement.setString(2, sql.workerId());
            try (ResultSet row = statement.executeQuery()) {
                return row.next() && locks.get(claim).has(Timestamps.instant(row, 1));
            }
        });
    }

    private static final String RENEW = """
            select {schema}.pgworker_renew(worker_id => ?, job_ids => ?, claims => ?::pg_catalog.timestamptz[], renewals => ?::pg_catalog.timestamptz[])
            """;

    /**
     * Gives the locks of these claims, and of their queues, their pending times, as far as the worker still holds them
     * and no other session has locked their rows.
     *
     * @return the ids of the jobs whose locks have these times
     */
    public Set<Long> renew(List<Claim> claims, RenewedLocks locks) throws SQLException {
        return sql.call(RENEW, (connection, statement) -> {
            statement.setString(1, sql.workerId());
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
            select id, queue_name, locked_at from {schema}._private_job_queues where locked_by = ?::pg_catalog.text
            """;

    /**
     * Reads which queues this worker has locked. Reads the whole table of queues, and takes no lock.
     *
     * @param limit how long the database may take
     */
    public List<HeldQueue> heldQueues(Duration limit) throws SQLException {
        return sql.call(HELD_QUEUES, limit, (connection, statement) -> {
            statement.setString(1, sql.workerId());
            List<HeldQueue> queues = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    queues.add(new HeldQueue(rows.getInt(1), rows.getString(2), Timestamps.instant(rows, 3)));
                }
            }
            return queues;
        });
    }
}
