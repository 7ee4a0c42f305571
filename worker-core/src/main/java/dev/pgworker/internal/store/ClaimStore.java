package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.NetworkTimeout;
import dev.pgworker.internal.jdbc.SqlArrays;
import dev.pgworker.internal.jdbc.SqlRows;
import dev.pgworker.internal.jdbc.Timestamps;

/** The claims of one worker, and its looks for due jobs. Each statement is committed before the method returns. Thread-safe. */
public final class ClaimStore {

    /** The claims that are under way. */
    private final Set<Statement> claiming = ConcurrentHashMap.newKeySet();

    /** The claims that were to be cancelled. */
    private final Set<Statement> cancelled = ConcurrentHashMap.newKeySet();

    private final JobSql sql;

    ClaimStore(JobSql sql) {
        this.sql = sql;
    }

    private static final String TASK_IDS = """
            select identifier, id from {schema}.pgworker_task_ids(?)
            """;

    /** Looks up the ids of the given tasks and creates those that do not exist. */
    public TaskIds tasks(Collection<String> identifiers) throws SQLException {
        return sql.call(TASK_IDS, (connection, statement) -> {
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

    private static final String CLAIM = "select " + ClaimedRows.COLUMNS
            + " from {schema}.pgworker_claim(?::{schema}.pgworker_request, ?, ?::{schema}.pgworker_floor[])";

    /**
     * Claims due jobs. Ends with an exception, and claims nothing, when {@link #cancelClaims} is called meanwhile, when
     * other claims take long, or when a single job cannot be claimed.
     *
     * @param wanted how many at most
     * @param floors where to begin, one for each kind of jobs to look at
     */
    public Claimed claim(ClaimRequest request, int wanted, Collection<Floor> floors) throws SQLException {
        return sql.call(CLAIM, (connection, statement) -> {
            set(statement, request, wanted, floors);
            return claimed(statement, request.tasks());
        });
    }

    private void set(PreparedStatement statement, ClaimRequest request, int wanted, Collection<Floor> floors)
            throws SQLException {
        statement.setString(1, request.text(sql.workerId()));
        statement.setInt(2, wanted);
        statement.setString(3, Floor.text(floors));
    }

    private static final String FIRST = "select c.id, t.identifier, c.run_at"
            + " from {schema}.pgworker_claim(?::{schema}.pgworker_request, ?, ?::{schema}.pgworker_floor[], dry => true) c"
            + " left join {schema}._private_tasks t on t.id operator(pg_catalog.=) c.task_id";

    /**
     * The job that a claim would take.
     *
     * @param task its identifier
     */
    public record First(long jobId, String task, Instant runAt) {}

    /** Returns the job that a claim of one would take, and claims nothing; null if there is none. */
    public @Nullable First first(ClaimRequest request, Collection<Floor> floors) throws SQLException {
        return sql.<@Nullable First>call(FIRST, (connection, statement) -> {
            set(statement, request, 1, floors);
            try (ResultSet row = statement.executeQuery()) {
                return row.next() ? new First(row.getLong(1), row.getString(2), Timestamps.instant(row, 3)) : null;
            }
        });
    }

    private static final String CLAIM_LIMITED = "select " + ClaimedRows.COLUMNS
            + " from {schema}.pgworker_claim_limited(?::{schema}.pgworker_request, ?, ?)";

    /** Claims due jobs of limited tasks, as far as their limits allow. As {@link #claim}, it can be cancelled. */
    public Claimed claimLimited(ClaimRequest request, int wanted) throws SQLException {
        return sql.call(CLAIM_LIMITED, (connection, statement) -> {
            setLimited(statement, request, wanted, false);
            return claiming(statement, rows -> ClaimedRows.readLimited(rows, sql.workerId(), request.tasks()));
        });
    }

    /** Returns the job that a claim of one limited job would take, and claims nothing; null if there is none. */
    public @Nullable First firstLimited(ClaimRequest request) throws SQLException {
        return sql.<@Nullable First>call(CLAIM_LIMITED, (connection, statement) -> {
            setLimited(statement, request, 1, true);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                long id = row.getLong(1);
                return row.wasNull()
                        ? null
                        : new First(id, request.tasks().nameOf(row.getInt(4)), Timestamps.instant(row, 7));
            }
        });
    }

    private void setLimited(PreparedStatement statement, ClaimRequest request, int wanted, boolean dry)
            throws SQLException {
        statement.setString(1, request.text(sql.workerId()));
        statement.setInt(2, wanted);
        statement.setBoolean(3, dry);
    }

    private static final String CLAIM_IDS = "select " + ClaimedRows.COLUMNS
            + " from {schema}.pgworker_claim_ids(?::{schema}.pgworker_request, ?::pg_catalog.int8[])";

    /** Claims those of these jobs that are due, in no queue and not locked. As {@link #claim}, it can be cancelled. */
    public Claimed claimIds(ClaimRequest request, Collection<Long> jobIds) throws SQLException {
        return sql.call(CLAIM_IDS, (connection, statement) -> claimIds(statement, request, jobIds));
    }

    /** Meanwhile nothing else is heard on the connection. */
    private static final Duration LIMIT_OF_ANNOUNCED = Duration.ofSeconds(3);

    /**
     * As {@link #claimIds(ClaimRequest, Collection)}, on the given connection.
     *
     * @param connection in auto-commit mode and in no transaction; it is broken where the server does not answer
     */
    public Claimed claimIds(Connection connection, ClaimRequest request, Collection<Long> jobIds) throws SQLException {
        return NetworkTimeout.limiting(
                connection,
                LIMIT_OF_ANNOUNCED,
                () -> Connections.readingCommitted(connection, () -> {
                    try (PreparedStatement statement = connection.prepareStatement(sql.in(CLAIM_IDS))) {
                        return claimIds(statement, request, jobIds);
                    }
                }));
    }

    private Claimed claimIds(PreparedStatement statement, ClaimRequest request, Collection<Long> jobIds)
            throws SQLException {
        statement.setString(1, request.text(sql.workerId()));
        statement.setString(2, SqlRows.array(jobIds));
        return claimed(statement, request.tasks());
    }

    private Claimed claimed(PreparedStatement statement, TaskIds tasks) throws SQLException {
        return claiming(statement, rows -> ClaimedRows.read(rows, sql.workerId(), tasks));
    }

    private interface Reading {
        Claimed read(ResultSet rows) throws SQLException;
    }

    private Claimed claiming(PreparedStatement statement, Reading reading) throws SQLException {
        claiming.add(statement);
        try (ResultSet rows = statement.executeQuery()) {
            return reading.read(rows);
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

    private static final String LOOK = "select queued, priority, run_at, id, due_in, at, took"
            + " from {schema}.pgworker_look(?::{schema}.pgworker_request, ?::{schema}.pgworker_floor[])";

    /**
     * Looks where due jobs begin, and changes nothing. Without floors that takes long where much is left of finished jobs.
     *
     * @param floors where to begin, one for each kind of jobs to look at; null to look at all jobs
     * @param limit how long the database may take; null for as long as a claim
     */
    public Look look(ClaimRequest request, @Nullable Collection<Floor> floors, @Nullable Duration limit)
            throws SQLException {
        if (limit == null) {
            return sql.call(LOOK, (connection, statement) -> look(statement, request, floors));
        }
        return sql.call(LOOK, limit, (connection, statement) -> look(statement, request, floors));
    }

    private Look look(PreparedStatement statement, ClaimRequest request, @Nullable Collection<Floor> floors)
            throws SQLException {
        statement.setString(1, request.text(sql.workerId()));
        statement.setString(2, Floor.text(floors));
        Map<Floor.Kind, Floor> first = new HashMap<>();
        boolean anyDue = false;
        Duration untilNext = null;
        Instant at = Instant.MIN;
        Duration took = Duration.ZERO;
        try (ResultSet row = statement.executeQuery()) {
            while (row.next()) {
                at = Timestamps.instant(row, 6);
                Floor.Kind kind = new Floor.Kind(row.getBoolean(1), row.getInt(2));
                if (row.wasNull()) {
                    took = Duration.ofNanos((long) (row.getDouble(7) * 1e9));
                    continue; // the last row
                }
                Instant runAt = Timestamps.nullableInstant(row, 3);
                anyDue |= runAt != null;
                first.put(kind, runAt == null ? new Floor(kind, at, 0) : new Floor(kind, runAt, row.getLong(4)));
                double seconds = row.getDouble(5);
                if (!row.wasNull()) {
                    Duration until = Duration.ofNanos((long) Math.min(seconds * 1e9, 1e18));
                    untilNext = untilNext == null || until.compareTo(untilNext) < 0 ? until : untilNext;
                }
            }
        }
        return new Look(first, anyDue, untilNext, at, took);
    }

    // A row that was locked or changed carries the transaction's id. Of those who share a lock it does not,
    // and they are not found.
    private static final String HOLDERS = """
            with asked as (select (?::{schema}.pgworker_request).task_ids as task_ids),
            due as (
              (select j.id, j.xmax as job_xmax, null::pg_catalog.xid as queue_xmax from {schema}._private_jobs j
                where j.is_available and j.job_queue_id is null and j.run_at operator(pg_catalog.<=) pg_catalog.now()
                  and j.task_id operator(pg_catalog.=) any(array(select pg_catalog.unnest(a.task_ids) from asked a))
                order by j.priority, j.run_at, j.id limit 200)
              union all
              (select j.id, j.xmax, q.xmax from {schema}._private_jobs j
                join {schema}._private_job_queues q on q.id operator(pg_catalog.=) j.job_queue_id
                where j.is_available and j.job_queue_id is not null and j.priority operator(pg_catalog.>=) -32768
                  and j.run_at operator(pg_catalog.<=) pg_catalog.now()
                  and j.task_id operator(pg_catalog.=) any(array(select pg_catalog.unnest(a.task_ids) from asked a))
                order by j.priority, j.run_at, j.id limit 200)),
            held as (
              select l.pid, pg_catalog.format('the rows of %s due jobs or of their queues, such as job %s', pg_catalog.count(*), pg_catalog.min(d.id)) as what
              from due d join pg_catalog.pg_locks l on l.locktype operator(pg_catalog.=) 'transactionid' and l.granted
                and (l.transactionid operator(pg_catalog.=) d.job_xmax or l.transactionid operator(pg_catalog.=) d.queue_xmax)
              group by l.pid
              union all
              select l.pid, pg_catalog.format('%s on %s', l.mode, c.relname)
              from pg_catalog.pg_locks l join pg_catalog.pg_class c on c.oid operator(pg_catalog.=) l.relation
              where l.granted and l.database operator(pg_catalog.=) (
                  select d.oid from pg_catalog.pg_database d where d.datname operator(pg_catalog.=) pg_catalog.current_database())
                and c.relnamespace operator(pg_catalog.=) '{schema}'::pg_catalog.regnamespace
                and c.relkind operator(pg_catalog.=) 'r' and c.relname operator(pg_catalog.<>) all('{pgworker_turn,pgworker_limit_turn}')
                and l.mode operator(pg_catalog.=) any('{ShareLock,ShareRowExclusiveLock,ExclusiveLock,AccessExclusiveLock}'))
            select pg_catalog.string_agg(pg_catalog.format('%s holds %s',
                case when h.pid is null then 'a prepared transaction'
                  else pg_catalog.format('process %s of %s (%s%s)', h.pid, a.usename, a.application_name,
                    case when a.xact_start is not null then pg_catalog.format(', %s, in a transaction for %s s', a.state,
                      pg_catalog.round(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() operator(pg_catalog.-) a.xact_start))) end) end,
                h.what), '; ')
            from held h left join pg_catalog.pg_stat_activity a on a.pid operator(pg_catalog.=) h.pid
            where h.pid is null or h.pid operator(pg_catalog.<>) pg_catalog.pg_backend_pid() and not coalesce(
              a.xact_start operator(pg_catalog.>) (pg_catalog.clock_timestamp() operator(pg_catalog.-)
                (?::pg_catalog.float8 operator(pg_catalog.*) interval '1 s')), false)
            """;

    /**
     * Returns who holds the rows of due jobs, or locks of tables that a claim needs; null if none is found.
     *
     * @param longerThan how old the transaction has to be, where its age may be read
     */
    public @Nullable String holders(ClaimRequest request, Duration longerThan) throws SQLException {
        return sql.<@Nullable String>call(HOLDERS, (connection, statement) -> {
            statement.setString(1, request.text(sql.workerId()));
            statement.setDouble(2, longerThan.toMillis() / 1000.0);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getString(1);
            }
        });
    }

    private static final String PAYLOADS = """
            select j.id, j.payload
            from rows from (pg_catalog.unnest(?::pg_catalog.int8[]), pg_catalog.unnest(?::pg_catalog.timestamptz[])) with ordinality g(id, claim, n)
            join {schema}._private_jobs j on j.id operator(pg_catalog.=) g.id
              and j.locked_by operator(pg_catalog.=) ?::pg_catalog.text and j.locked_at operator(pg_catalog.=) g.claim
            where g.n operator(pg_catalog.=) 1 or pg_catalog.pg_column_size(j.payload) operator(pg_catalog.<=) 32768
            """;

    /**
     * Reads the payload of a job that this worker holds, and those of others as far as they are not too large together.
     *
     * @param claims the first is that of the job
     * @return the payloads by the ids of the jobs, without those that the worker does not hold
     */
    public Map<Long, String> payloads(List<Claim> claims, RenewedLocks locks) throws SQLException {
        return sql.call(PAYLOADS, (connection, statement) -> {
            statement.setArray(1, SqlArrays.ids(connection, claims.stream().map(Claim::jobId)));
            statement.setArray(2, SqlArrays.times(connection, claims, locks::current));
            statement.setString(3, sql.workerId());
            Map<Long, String> payloads = new HashMap<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    payloads.put(rows.getLong(1), rows.getString(2));
                }
            }
            return payloads;
        });
    }
}
