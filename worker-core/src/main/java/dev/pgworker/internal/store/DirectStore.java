package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.DatabaseContact;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.jdbc.LocalSettings;
import dev.pgworker.internal.jdbc.PrivateConnections;
import dev.pgworker.internal.jdbc.SqlArrays;
import dev.pgworker.internal.jdbc.SqlRows;
import dev.pgworker.internal.jdbc.SqlWork;
import dev.pgworker.internal.jdbc.Timestamps;

/** The statements of direct batches: jobs are locked, run and deleted in one transaction. Thread-safe. */
public final class DirectStore {

    private static final Logger log = WorkerLog.of(DirectStore.class);

    /** How long any statement of a session may take. */
    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

    /** What a session that has broken was about to run stays noted under its number. */
    private final AtomicInteger opened = new AtomicInteger();

    private final JobSql sql;
    private final DataSource source;

    /**
     * Creates the store of one worker.
     *
     * @param privateSource opens connections beside the pool; null to keep one of the pool for each session
     */
    DirectStore(JobSql sql, @Nullable DataSource privateSource) {
        this.sql = sql;
        source = privateSource == null ? sql.dataSource() : PrivateConnections.of(privateSource, sql.dataSource());
    }

    /**
     * A server learns by the first within half a minute that the worker is no longer there, and frees the jobs; not on
     * local sockets. What waits for a lock, or takes too long, ends before this side gives up and opens another
     * connection. The limits of a role for transactions are meant for what it forgets, which a batch is not. The plan
     * is the same whatever the statistics are.
     */
    private static final String SETTINGS = """
            tcp_keepalives_idle=10 tcp_keepalives_interval=5 tcp_keepalives_count=3 lock_timeout=5s statement_timeout=9s
            idle_in_transaction_session_timeout=0 transaction_timeout=0 search_path=pg_catalog,pg_temp jit=off
            plan_cache_mode=force_generic_plan enable_seqscan=off enable_bitmapscan=off enable_sort=off enable_hashjoin=off
            enable_mergejoin=off""";

    /** The first statements of each transaction: a pooler may give the session to others in between. */
    private static final String BEGIN = "set transaction isolation level read committed; ";

    /** What broken batches have left of jobs that are gone. */
    private static final String FORGET = """
            delete from {schema}.pgworker_batches b
            where b.worker_id = ? and not exists (
              select from unnest(b.job_ids) g(id) join {schema}._private_jobs j on j.id = g.id)
            """;

    /** Opens a session. */
    public Session open() throws SQLException {
        Connection connection = source.getConnection();
        try {
            connection.setNetworkTimeout(Runnable::run, (int) ANSWER_LIMIT.toMillis());
            connection.setAutoCommit(true);
            String begin = BEGIN + LocalSettings.statement(connection, SETTINGS);
            connection.setAutoCommit(false);
            try (PreparedStatement first = connection.prepareStatement(begin);
                    PreparedStatement statement = connection.prepareStatement(sql.in(FORGET))) {
                first.execute();
                statement.setString(1, sql.workerId());
                statement.execute();
            }
            connection.commit();
            return new Session(opened.incrementAndGet(), connection, begin);
        } catch (SQLException | RuntimeException | Error e) {
            breakOff(connection);
            throw e;
        }
    }

    /** A connection that has been set up like these is not given to others, as a pool might do. */
    private static void breakOff(Connection connection) {
        try (connection) {
            connection.abort(Runnable::run);
        } catch (SQLException | RuntimeException | Error e) {
            log.debug("The connection was broken already", e);
        }
    }

    /** The connection whose transactions are the batches of one chain. Belongs to one thread, but for {@link #isOpen} and {@link #close}. */
    public final class Session {

        private final int number;
        private final Connection connection;
        private final String begin;
        private volatile boolean inBatch;
        private volatile boolean broken;

        private Session(int number, Connection connection, String begin) {
            this.number = number;
            this.connection = connection;
            this.begin = begin + "; " + sql.in(LOCK);
        }

        private <T> T call(SqlWork<T> work) throws SQLException {
            try {
                T result = work.run();
                DatabaseContact.made();
                return result;
            } catch (SQLException | RuntimeException | Error e) {
                broken = true;
                throw e;
            }
        }

        /** Locks that keep rows from being deleted are waited for before anything runs, not afterwards. */
        private static final String LOCK = "lock table {schema}._private_jobs in row exclusive mode";

        /** A function would have to store the rows before it could return them, a sixth of the cost of a job. */
        private static final String TAKE = """
                select j.*
                from (select {schema}.pgworker_unlimited(?) as task_ids offset 0) u
                cross join unnest(?::{schema}.pgworker_floor[]) l
                cross join lateral (
                  select j.id, null::int, null::text, j.task_id, {schema}.pgworker_short(j.payload), j.priority, j.run_at, j.attempts + 1,
                    j.max_attempts, j.last_error, nullif(j.created_at, j.run_at), nullif(j.updated_at, j.created_at), j.key, j.revision,
                    j.flags, j.ctid, clock_timestamp()
                  from {schema}._private_jobs j
                  where j.is_available and j.job_queue_id is null and j.priority = l.priority and j.run_at <= now()
                    and (j.run_at, j.id) >= (l.run_at, l.id) and j.task_id = any(u.task_ids) and {schema}.pgworker_allowed(j.flags, ?)
                    and (? or j.key is null and {schema}.pgworker_short(j.payload) is not null)
                  order by j.run_at, j.id limit ? for update skip locked) j
                limit ?
                """;

        /**
         * Begins a batch: locks due jobs without a queue. Waits for no row.
         *
         * @param floors where to begin
         * @param all whether to take jobs with keys or large payloads, too
         * @return the jobs as if they had been claimed at that moment, in the order in which they are to start
         */
        public Claimed take(
                TaskIds tasks, Collection<String> forbidden, Collection<Floor> floors, int wanted, boolean all)
                throws SQLException {
            return call(() -> {
                inBatch = true;
                try (PreparedStatement lock = connection.prepareStatement(begin);
                        PreparedStatement statement = connection.prepareStatement(sql.in(TAKE))) {
                    lock.execute();
                    statement.setArray(1, connection.createArrayOf("int4", tasks.ids()));
                    statement.setString(2, Floor.text(floors));
                    statement.setArray(3, SqlArrays.texts(connection, forbidden));
                    statement.setBoolean(4, all);
                    statement.setInt(5, wanted);
                    statement.setInt(6, wanted);
                    try (ResultSet rows = statement.executeQuery()) {
                        return ClaimedRows.read(rows, sql.workerId(), tasks);
                    }
                }
            });
        }

        private static final String WHO = "select pg_backend_pid(), txid_current()";

        private static final String NOTE = "select {schema}.pgworker_note_batch(?, ?, ?, ?, ?)";

        /**
         * Has it outlive this process that these jobs are about to run. Commits on another connection.
         *
         * @return the ids of those that are not to run here: they have lost a worker before, or were in a batch that broke
         */
        public Set<Long> note(List<ClaimedJob> taken) throws SQLException {
            long[] who = call(() -> {
                try (Statement statement = connection.createStatement();
                        ResultSet row = statement.executeQuery(WHO)) {
                    row.next();
                    return new long[] {row.getLong(1), row.getLong(2)};
                }
            });
            return sql.call(NOTE, (notes, statement) -> {
                statement.setString(1, sql.workerId());
                statement.setInt(2, number);
                statement.setInt(3, (int) who[0]);
                statement.setLong(4, who[1]);
                statement.setArray(
                        5,
                        SqlArrays.ids(notes, taken.stream().map(one -> one.job().id())));
                try (ResultSet row = statement.executeQuery()) {
                    row.next();
                    return Set.copyOf(Arrays.asList((Long[]) row.getArray(1).getArray()));
                }
            });
        }

        private static final String RECORD = "select {schema}.pgworker_note_runs(?, ?, ?, ?, ?, ?)";

        private static final String END = "select {schema}.pgworker_end_batch(?, ?, ?::tid[], ?::tid[], ?)";

        /**
         * Deletes jobs that have succeeded, claims the others, as of the time when they were locked, and ends the batch. Those
         * that are in neither list are free again.
         *
         * @param runs what the history gets of those that have succeeded, by the ids of the jobs; empty if none is kept
         * @return false if some job could not be deleted, and all of them have been claimed instead
         */
        public boolean end(List<ClaimedJob> done, List<ClaimedJob> others, Map<Long, RunRecord> runs)
                throws SQLException {
            return call(() -> {
                ClaimedJob any = !done.isEmpty() ? done.get(0) : others.isEmpty() ? null : others.get(0);
                Object at = any == null ? null : Timestamps.offset(any.job().lockedAt());
                if (!runs.isEmpty()) {
                    record(done, runs, at);
                }
                try (PreparedStatement statement = connection.prepareStatement(sql.in(END))) {
                    statement.setString(1, sql.workerId());
                    statement.setInt(2, number);
                    statement.setString(3, addresses(done));
                    statement.setString(4, addresses(others));
                    statement.setObject(5, at, Types.TIMESTAMP_WITH_TIMEZONE);
                    boolean deleted;
                    try (ResultSet row = statement.executeQuery()) {
                        row.next();
                        deleted = row.getBoolean(1);
                    }
                    connection.commit();
                    inBatch = false;
                    return deleted;
                }
            });
        }

        private void record(List<ClaimedJob> done, Map<Long, RunRecord> runs, @Nullable Object at) throws SQLException {
            List<Long> ids = done.stream().map(one -> one.job().id()).toList();
            try (PreparedStatement statement = connection.prepareStatement(sql.in(RECORD))) {
                statement.setArray(1, SqlArrays.ids(connection, ids.stream()));
                RunRecords.set(connection, statement, 2, ids, runs);
                statement.setString(5, sql.workerId());
                statement.setObject(6, at);
                statement.execute();
            }
        }

        private static String addresses(List<ClaimedJob> jobs) {
            return SqlRows.array(jobs.stream().map(ClaimedJob::address));
        }

        /** Ends a batch of which nothing has run. */
        public void rollBack() throws SQLException {
            call(() -> {
                connection.rollback();
                inBatch = false;
                return true;
            });
        }

        /** Asks the database whether the batch still holds its jobs; no answer is a no. For the session's thread. */
        public boolean holds() {
            if (!isOpen()) {
                return false;
            }
            try (Statement statement = connection.createStatement()) {
                statement.executeQuery(WHO).close();
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

        /** Returns true if the session cannot be used any more. */
        public boolean isBroken() {
            return broken;
        }

        /** Breaks the connection, so that the jobs of a batch are free. May be called from any thread; does not wait. */
        public void close() {
            broken = true;
            breakOff(connection);
        }
    }
}
