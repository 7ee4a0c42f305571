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
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.internal.failure.DatabaseContact;
import dev.pgworker.internal.jdbc.PrivateConnections;
import dev.pgworker.internal.jdbc.SessionSettings;
import dev.pgworker.internal.jdbc.SqlArrays;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.job.Job;
import dev.pgworker.schema.WorkerSchema;

/** The statements of direct batches: jobs are locked, run and deleted in one transaction. Thread-safe. */
public final class DirectStore {

    private static final Logger log = LoggerFactory.getLogger(DirectStore.class);

    /** How long any statement of a session may take. */
    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

    private static final Comparator<Taken> START_ORDER = Comparator.<Taken>comparingInt(taken -> taken.job.priority())
            .thenComparing(taken -> taken.job.runAt())
            .thenComparingLong(taken -> taken.job.id());

    private final DataSource source;
    private final WorkerSchema schema;
    private final String workerId;

    /**
     * Creates the store of the worker with this id.
     *
     * @param privateSource opens connections beside the pool; null to keep two of the pool for each session
     */
    public DirectStore(@Nullable DataSource privateSource, DataSource pool, WorkerSchema schema, String workerId) {
        this.source = privateSource == null ? pool : PrivateConnections.of(privateSource, pool);
        this.schema = schema;
        this.workerId = workerId;
    }

    /**
     * A job that a session has locked.
     *
     * @param job as if it were claimed at that moment
     * @param address of its row, which stays the same while the row is locked
     * @param hasPayload false if the payload is too large to be taken
     */
    public record Taken(Job job, String address, boolean hasPayload) {}

    /**
     * Which jobs to lock.
     *
     * @param wanted how many at most
     * @param forbidden flags whose jobs are passed over
     * @param part which of the parts into which jobs are divided by their ids
     * @param parts how many parts there are
     * @param floor where to begin; null to look at all jobs
     */
    public record Request(
            int wanted,
            Collection<String> forbidden,
            int part,
            int parts,
            @Nullable Floor floor) {}

    /** A place in the order of jobs without a queue: no earlier one is looked at. */
    public record Floor(int priority, Instant runAt, long jobId) {

        /** Returns the place of a job. */
        public static Floor at(Job job) {
            return new Floor(job.priority(), job.runAt(), job.id());
        }
    }

    /** Sets the parameters of a statement. */
    @FunctionalInterface
    private interface Parameters {
        void set(PreparedStatement statement) throws SQLException;
    }

    /** Opens a session for one chain of batches. */
    public Session open(int chain) throws SQLException {
        SetUp batches = connect();
        try {
            return new Session(chain, batches, connect());
        } catch (SQLException | RuntimeException | Error e) {
            closeQuietly(batches.connection);
            throw e;
        }
    }

    /**
     * A server learns by the first within half a minute that nobody is there any more, and frees the jobs; not on local sockets.
     * What waits for a lock, or takes too long, ends before this side gives up and opens another connection. The limits of a role
     * for transactions are meant for what it forgets, which a batch is not. The plan is the same whatever the statistics say.
     */
    private static final Map<String, String> SETTINGS = Map.ofEntries(
            Map.entry("tcp_keepalives_idle", "10"),
            Map.entry("tcp_keepalives_interval", "5"),
            Map.entry("tcp_keepalives_count", "3"),
            Map.entry("lock_timeout", "5s"),
            Map.entry("statement_timeout", "9s"),
            Map.entry("idle_in_transaction_session_timeout", "0"),
            Map.entry("transaction_timeout", "0"),
            Map.entry("search_path", "pg_catalog, pg_temp"),
            Map.entry("plan_cache_mode", "force_generic_plan"),
            Map.entry("enable_seqscan", "off"),
            Map.entry("enable_bitmapscan", "off"),
            Map.entry("enable_sort", "off"),
            Map.entry("enable_hashjoin", "off"),
            Map.entry("enable_mergejoin", "off"),
            Map.entry("jit", "off"));

    private SetUp connect() throws SQLException {
        Connection connection = source.getConnection();
        try {
            int networkTimeout = connection.getNetworkTimeout();
            connection.setNetworkTimeout(Runnable::run, (int) ANSWER_LIMIT.toMillis());
            connection.setAutoCommit(true);
            int isolation = connection.getTransactionIsolation();
            connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
            return new SetUp(connection, networkTimeout, isolation, SessionSettings.set(connection, SETTINGS));
        } catch (SQLException | RuntimeException | Error e) {
            closeQuietly(connection);
            throw e;
        }
    }

    /**
     * A connection that may come from a pool, and how it was.
     *
     * @param networkTimeout in milliseconds
     * @param isolation a constant of {@link Connection}
     */
    private record SetUp(Connection connection, int networkTimeout, int isolation, SessionSettings before) {

        void giveBack() throws SQLException {
            connection.setAutoCommit(true);
            before.restore(connection);
            connection.setTransactionIsolation(isolation);
            connection.setNetworkTimeout(Runnable::run, networkTimeout);
            connection.close();
        }
    }

    /** A connection that has been set up like these, and not been reset, goes to nobody else. */
    private static void closeQuietly(Connection connection) {
        try (connection) {
            connection.abort(Runnable::run);
        } catch (SQLException | RuntimeException | Error e) {
            log.debug("The connection was broken already", e);
        }
    }

    /**
     * The two connections of one chain: one whose transaction is the batch, and one for what has to be committed meanwhile.
     * Belongs to one thread, but for {@link #isOpen} and {@link #abort}.
     */
    public final class Session {

        private final int chain;
        private final SetUp batchesSetUp;
        private final SetUp notesSetUp;
        private final Connection batches;
        private final Connection notes;

        /** The transaction, once it has locked a job. */
        private long xid;

        private volatile boolean inBatch;
        private volatile boolean broken;

        private Session(int chain, SetUp batches, SetUp notes) throws SQLException {
            this.chain = chain;
            batchesSetUp = batches;
            notesSetUp = notes;
            this.batches = batches.connection;
            this.notes = notes.connection;
            try {
                this.batches.setAutoCommit(false);
            } catch (SQLException e) {
                abort();
                throw e;
            }
        }

        /**
         * A function would have to store the rows before it could return them, a sixth of the cost of a job. Times that are those
         * before are left out for the same reason. All payloads go to memory at once, so large ones are left out, too.
         */
        private static final String COLUMNS = """
                j.id, j.task_id,
                case when pg_column_size(j.payload) <= 2000 and octet_length(j.payload::text) <= 8000 then j.payload end,
                j.priority, j.run_at, j.attempts, j.max_attempts, j.last_error, nullif(j.created_at, j.run_at),
                nullif(j.updated_at, j.created_at), j.key, j.revision, j.flags, j.ctid, clock_timestamp(), txid_current()
                """;

        private static final String TAKE = """
                with recursive level(p) as (
                  (select coalesce(?::int, (
                    select j.priority from {schema}._private_jobs j
                    where j.is_available and j.job_queue_id is null
                    order by j.priority, j.run_at, j.id limit 1)))
                  union all
                  select (
                    select j.priority from {schema}._private_jobs j
                    where j.is_available and j.job_queue_id is null and j.priority > l.p
                    order by j.priority, j.run_at, j.id limit 1)
                  from level l where l.p is not null)
                select j.*
                from level l
                cross join lateral (
                  select\s""" + COLUMNS + """
                  from {schema}._private_jobs j
                  where j.is_available and j.job_queue_id is null and j.priority = l.p and j.run_at <= now() and j.task_id = any(?)
                    and (j.run_at, j.id) >= (case when l.p = ? then ?::timestamptz else '-infinity' end, case when l.p = ? then ?::bigint else 0 end)
                    and j.id % ? = ?
                    and (?::text[] is null or j.flags is null or not j.flags ??| ?)
                  order by j.run_at, j.id limit ? for update skip locked) j
                limit ?
                """;

        private static final String TAKE_CHOSEN = "select " + COLUMNS + """
                from {schema}._private_jobs j
                where j.id = any(?) and j.is_available and j.job_queue_id is null and j.run_at <= now() and j.task_id = any(?)
                  and j.key is null and (?::text[] is null or j.flags is null or not j.flags ??| ?)
                for update skip locked
                """;

        /** Begins a batch: locks due jobs, which are returned in the order in which they are to start. Waits for no lock. */
        public List<Taken> take(TaskIds tasks, Request request) throws SQLException {
            Floor floor = request.floor;
            return take(TAKE, tasks, statement -> {
                statement.setObject(1, floor == null ? null : floor.priority, Types.INTEGER);
                statement.setArray(2, batches.createArrayOf("int4", tasks.ids()));
                statement.setObject(3, floor == null ? null : floor.priority, Types.INTEGER);
                statement.setObject(
                        4, floor == null ? null : Timestamps.offset(floor.runAt), Types.TIMESTAMP_WITH_TIMEZONE);
                statement.setObject(5, floor == null ? null : floor.priority, Types.INTEGER);
                statement.setLong(6, floor == null ? 0 : floor.jobId);
                statement.setInt(7, request.parts);
                statement.setInt(8, request.part);
                Array forbidden = array(request.forbidden);
                statement.setArray(9, forbidden);
                statement.setArray(10, forbidden);
                statement.setInt(11, request.wanted);
                statement.setInt(12, request.wanted);
            });
        }

        /** Begins a batch with those of the given jobs that are still there, without a key and free. */
        public List<Taken> take(TaskIds tasks, Collection<String> forbidden, List<Long> ids) throws SQLException {
            List<Taken> taken = take(TAKE_CHOSEN, tasks, statement -> {
                statement.setArray(1, batches.createArrayOf("int8", ids.toArray()));
                statement.setArray(2, batches.createArrayOf("int4", tasks.ids()));
                Array flags = array(forbidden);
                statement.setArray(3, flags);
                statement.setArray(4, flags);
            });
            taken.sort(START_ORDER);
            return taken;
        }

        private @Nullable Array array(Collection<String> forbidden) throws SQLException {
            return forbidden.isEmpty() ? null : batches.createArrayOf("text", forbidden.toArray());
        }

        private List<Taken> take(String sql, TaskIds tasks, Parameters parameters) throws SQLException {
            try (PreparedStatement statement = batches.prepareStatement(schema.in(sql))) {
                parameters.set(statement);
                inBatch = true;
                lockTable();
                try (ResultSet rows = statement.executeQuery()) {
                    List<Taken> taken = new ArrayList<>();
                    Instant takenAt = null;
                    while (rows.next()) {
                        if (takenAt == null) {
                            takenAt = Timestamps.instant(rows, 15);
                            xid = rows.getLong(16);
                        }
                        taken.add(taken(rows, tasks, takenAt));
                    }
                    DatabaseContact.made();
                    return taken;
                }
            } catch (SQLException | RuntimeException | Error e) {
                broken = true;
                throw e;
            }
        }

        private static final String LOCK = "lock table {schema}._private_jobs in row exclusive mode";

        /** Whoever keeps rows from being deleted is waited for before anything runs, not afterwards. */
        private void lockTable() throws SQLException {
            try (PreparedStatement lock = batches.prepareStatement(schema.in(LOCK))) {
                lock.execute();
            }
        }

        private Taken taken(ResultSet row, TaskIds tasks, Instant takenAt) throws SQLException {
            String payload = row.getString(3);
            Instant runAt = Timestamps.instant(row, 5);
            Instant createdAt = Timestamps.instant(row, 9, runAt);
            Job job = new Job(
                    row.getLong(1),
                    Objects.requireNonNull(tasks.identifiers().get(row.getInt(2))),
                    payload == null ? "null" : payload,
                    null,
                    row.getInt(4),
                    runAt,
                    row.getInt(6) + 1,
                    row.getInt(7),
                    row.getString(8),
                    createdAt,
                    Timestamps.instant(row, 10, createdAt),
                    row.getString(11),
                    takenAt,
                    workerId,
                    row.getInt(12),
                    JobRows.flags(row, 13));
            return new Taken(job, row.getString(14), payload != null);
        }

        private static final String NOTE = """
                select {schema}.pgworker_note_batch(worker_id => ?, chain => ?, backend_pid => ?, xid => ?, job_ids => ?, look => ?)
                """;

        /**
         * Has it outlive this process that these jobs are about to run.
         *
         * @param look whether to find out which of them are not to run here
         * @return the ids of these: they have lost a worker before, or were in a batch that broke
         */
        public Set<Long> note(List<Taken> taken, boolean look) throws SQLException {
            try (PreparedStatement statement = notes.prepareStatement(schema.in(NOTE))) {
                statement.setString(1, workerId);
                statement.setInt(2, chain);
                statement.setInt(3, batches.unwrap(PGConnection.class).getBackendPID());
                statement.setLong(4, xid);
                statement.setArray(
                        5,
                        notes.createArrayOf(
                                "int8", taken.stream().map(one -> one.job.id()).toArray(Long[]::new)));
                statement.setBoolean(6, look);
                try (ResultSet row = statement.executeQuery()) {
                    row.next();
                    Array ids = row.getArray(1);
                    return ids == null ? Set.of() : new HashSet<>(List.of((Long[]) ids.getArray()));
                }
            } catch (SQLException | RuntimeException | Error e) {
                broken = true;
                throw e;
            }
        }

        private static final String END = """
                select {schema}.pgworker_end_batch(worker_id => ?, chain => ?, done => ?::pg_catalog.tid[], claimed => ?::pg_catalog.tid[],
                  claimed_at => ?)
                """;

        private static final String END_RECORDED = """
                select {schema}.pgworker_end_batch_recorded(worker_id => ?, chain => ?, done => ?::pg_catalog.tid[],
                  claimed => ?::pg_catalog.tid[], claimed_at => ?,\s""" + RunRecords.ARGUMENTS + ", run_ids => ?)";

        /**
         * Deletes jobs that have succeeded, claims the others, as of the time when they were locked, and ends the batch. Those
         * that are in neither list are free again.
         *
         * @param runs what to tell the history of those that have succeeded, by the ids of the jobs; empty if none is kept
         * @return false if some job could not be deleted, and all of them have been claimed instead
         */
        public boolean end(List<Taken> done, List<Taken> others, Map<Long, RunRecord> runs) throws SQLException {
            try (PreparedStatement statement =
                    batches.prepareStatement(schema.in(runs.isEmpty() ? END : END_RECORDED))) {
                Taken any = done.isEmpty() ? others.get(0) : done.get(0);
                statement.setString(1, workerId);
                statement.setInt(2, chain);
                statement.setString(3, addresses(done));
                statement.setString(4, addresses(others));
                statement.setObject(5, Timestamps.offset(any.job.lockedAt()));
                if (!runs.isEmpty()) {
                    List<Long> ids = done.stream().map(one -> one.job.id()).toList();
                    RunRecords.set(batches, statement, 6, ids, runs);
                    statement.setArray(9, SqlArrays.ids(batches, ids.stream()));
                }
                boolean deleted;
                try (ResultSet row = statement.executeQuery()) {
                    row.next();
                    deleted = row.getBoolean(1);
                }
                batches.commit();
                inBatch = false;
                DatabaseContact.made();
                return deleted;
            } catch (SQLException | RuntimeException | Error e) {
                broken = true;
                throw e;
            }
        }

        private static String addresses(List<Taken> taken) {
            StringBuilder text = new StringBuilder(12 * taken.size() + 2).append('{');
            for (Taken one : taken) {
                text.append(text.length() == 1 ? "\"" : ",\"")
                        .append(one.address)
                        .append('"');
            }
            return text.append('}').toString();
        }

        /** Ends a batch of which nothing has run. */
        public void rollBack() throws SQLException {
            try {
                batches.rollback();
                inBatch = false;
            } catch (SQLException | RuntimeException | Error e) {
                broken = true;
                throw e;
            }
        }

        private static final String ASK = "select 1";

        /** Asks the database whether the batch still holds its jobs; no answer is a no. For the session's thread. */
        public boolean holds() {
            if (!isOpen()) {
                return false;
            }
            try (Statement statement = batches.createStatement()) {
                statement.executeQuery(ASK).close();
                return true;
            } catch (SQLException e) {
                broken = true;
                log.warn("The transaction of a direct batch has broken; its jobs run again", e);
                return false;
            }
        }

        /** Returns whether a batch is under way and nothing is known to have gone wrong with it. */
        public boolean isOpen() {
            return inBatch && !broken;
        }

        /** Returns true if the session cannot be used any more: close it. */
        public boolean isBroken() {
            return broken;
        }

        private static final String FORGET = """
                delete from {schema}.pgworker_batches where worker_id operator(pg_catalog.=) ?
                  and chain operator(pg_catalog.=) ?
                """;

        /** Ends the session, and a batch that is under way, whose jobs are free then. */
        public void close() {
            if (broken || inBatch) {
                abort();
                return;
            }
            try (PreparedStatement statement = notes.prepareStatement(schema.in(FORGET))) {
                statement.setString(1, workerId);
                statement.setInt(2, chain);
                statement.execute();
                broken = true;
                batchesSetUp.giveBack();
                notesSetUp.giveBack();
            } catch (SQLException | RuntimeException | Error e) {
                log.debug("A batch could not be forgotten, or its connections not given back", e);
                abort();
            }
        }

        /** Breaks the connections, so that the jobs of a batch are free. May be called from any thread; does not wait. */
        public void abort() {
            broken = true;
            closeQuietly(batches);
            closeQuietly(notes);
        }
    }
}
