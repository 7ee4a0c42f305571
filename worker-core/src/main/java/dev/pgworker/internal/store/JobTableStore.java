package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.NetworkTimeout;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.schema.WorkerSchema;

/** Upkeep of the table of jobs. Each method takes a connection of its own from the pool. */
public final class JobTableStore {

    private final DataSource dataSource;
    private final WorkerSchema schema;

    private final Duration longestVacuum;

    private volatile @Nullable Statement running;
    private volatile boolean vacuumEnds;

    /** Creates the upkeep of one schema's table. */
    public JobTableStore(DataSource dataSource, WorkerSchema schema) {
        this(dataSource, schema, LONGEST_VACUUM);
    }

    /**
     * Creates the upkeep of one schema's table.
     *
     * @param longestVacuum when a vacuum is given up, in whole seconds
     */
    public JobTableStore(DataSource dataSource, WorkerSchema schema, Duration longestVacuum) {
        this.dataSource = dataSource;
        this.schema = schema;
        this.longestVacuum = longestVacuum;
    }

    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

    // From version 17 on, VACUUM can be granted; the privilege is unknown to earlier ones.
    private static final String MAY_VACUUM = """
            select pg_catalog.pg_has_role(c.relowner, 'USAGE')
              or exists (
                select from pg_catalog.pg_database d
                where d.datname = pg_catalog.current_database() and pg_catalog.pg_has_role(d.datdba, 'USAGE'))
              or case when pg_catalog.current_setting('server_version_num')::int >= 170000
                then pg_catalog.has_table_privilege(c.oid, 'MAINTAIN') else false end
            from pg_catalog.pg_class c where c.oid = '{schema}._private_jobs'::pg_catalog.regclass::pg_catalog.oid
            """;

    /** Returns whether the role of the pool's connections may vacuum the table. */
    public boolean mayVacuum() throws SQLException {
        return Connections.call(dataSource, schema.in(MAY_VACUUM), ANSWER_LIMIT, (connection, statement) -> {
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getBoolean(1);
            }
        });
    }

    private static final String SINCE_VACUUM = """
            select extract(epoch from pg_catalog.clock_timestamp() - greatest(
              pg_catalog.pg_stat_get_last_vacuum_time(c.oid), pg_catalog.pg_stat_get_last_autovacuum_time(c.oid)))
            from pg_catalog.pg_class c where c.oid = '{schema}._private_jobs'::pg_catalog.regclass::pg_catalog.oid
            """;

    /** Returns how long ago the table was last vacuumed; null if the statistics do not show it. */
    public @Nullable Duration sinceVacuum() throws SQLException {
        return Connections.<@Nullable Duration>call(
                dataSource, schema.in(SINCE_VACUUM), ANSWER_LIMIT, (connection, statement) -> {
                    try (ResultSet row = statement.executeQuery()) {
                        row.next();
                        double seconds = row.getDouble(1);
                        return row.wasNull() ? null : Duration.ofNanos((long) (seconds * 1e9));
                    }
                });
    }

    /**
     * Whatever keeps the oldest snapshot of the database.
     *
     * @param holder in words: a session, a prepared transaction or a replication slot, and what is known of it
     * @param sessionId the process id of a session; null for anything else
     * @param transaction the oldest transaction that it sees as running, or its own: as long as it is the same, nothing has changed
     * @param since when it began; null if that is not known, to a role that may not see others' sessions for example
     * @param age how long ago that was, by the database's clock
     */
    public record Snapshot(
            String holder,
            @Nullable Integer sessionId,
            String transaction,
            @Nullable Instant since,
            @Nullable Duration age) {}

    // A catalog_xmin keeps nothing of this table. A vacuum's own snapshot keeps nothing at all.
    private static final String OLDEST_SNAPSHOT = """
            select s.kind, s.id, s.role_name, s.application, s.state, s.since,
              pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - s.since), s.transaction from (
              select 'session' as kind, a.pid::pg_catalog.text as id, a.usename as role_name, a.application_name as application,
                a.state, a.xact_start as since, coalesce(a.backend_xid, a.backend_xmin)::pg_catalog.text as transaction,
                greatest(pg_catalog.age(a.backend_xmin), pg_catalog.age(a.backend_xid)) as age
              from pg_catalog.pg_stat_activity a
              where a.pid operator(pg_catalog.<>) pg_catalog.pg_backend_pid() and (a.backend_xmin is not null or a.backend_xid is not null)
                and (a.datname = pg_catalog.current_database() or a.backend_type = 'walsender'::pg_catalog.text)
                and not coalesce(pg_catalog.starts_with(pg_catalog.lower(a.query), 'vacuum')
                  and not pg_catalog.starts_with(pg_catalog.lower(a.query), 'vacuum full'), false)
                and a.backend_type is distinct from 'autovacuum worker'::pg_catalog.text
              union all
              select 'prepared transaction', p.gid, p.owner, null, null, p.prepared, p.transaction::pg_catalog.text, pg_catalog.age(p.transaction)
              from pg_catalog.pg_prepared_xacts p where p.database = pg_catalog.current_database()
              union all
              select 'replication slot', r.slot_name::pg_catalog.text, null, null, null, null, r.xmin::pg_catalog.text, pg_catalog.age(r.xmin)
              from pg_catalog.pg_replication_slots r where r.xmin is not null) s
            order by s.age desc limit 1
            """;

    /** Returns what keeps the oldest snapshot of the database; null if no other session has one. */
    public @Nullable Snapshot oldestSnapshot() throws SQLException {
        return Connections.<@Nullable Snapshot>call(
                dataSource, schema.in(OLDEST_SNAPSHOT), ANSWER_LIMIT, (connection, statement) -> {
                    try (ResultSet row = statement.executeQuery()) {
                        return row.next() ? snapshot(row) : null;
                    }
                });
    }

    private static Snapshot snapshot(ResultSet row) throws SQLException {
        String kind = row.getString(1);
        String id = row.getString(2);
        StringBuilder holder = new StringBuilder(kind).append(' ').append(id);
        append(holder, " of role ", row.getString(3));
        append(holder, ", application ", row.getString(4));
        append(holder, ", ", row.getString(5));
        Instant since = Timestamps.nullableInstant(row, 6);
        return new Snapshot(
                holder.toString(),
                kind.equals("session") ? Integer.valueOf(id) : null,
                row.getString(8),
                since,
                since == null ? null : Duration.ofMillis((long) (row.getDouble(7) * 1_000)));
    }

    private static void append(StringBuilder holder, String before, @Nullable String what) {
        if (what != null && !what.isBlank()) {
            holder.append(before).append(what);
        }
    }

    // TRUNCATE would lock the table against all. Without SKIP_LOCKED it would wait for another vacuum of the
    // table.
    private static final String VACUUM = """
            vacuum (truncate off, index_cleanup on, skip_locked %s) {schema}._private_jobs
            """;

    /** Indexes of tens of GB take minutes, and one that is cancelled has removed nothing from them. */
    private static final Duration LONGEST_VACUUM = Duration.ofHours(1);

    /** How long after its cancellation a vacuum's connection is given up, which may be dead without any sign. */
    private static final Duration CANCELLATION = Duration.ofMinutes(1);

    /**
     * Removes what finished jobs left behind, unless another session is doing so.
     *
     * @throws SQLException also if it was cancelled, or takes longer than an hour
     */
    public void vacuum() throws SQLException {
        try (Connection connection = dataSource.getConnection();
                Statement statement = connection.createStatement()) {
            boolean autoCommit = connection.getAutoCommit();
            if (!autoCommit) {
                connection.setAutoCommit(true);
            }
            try {
                boolean mayBeParallel = connection.getMetaData().getDatabaseMajorVersion() >= 13;
                statement.setQueryTimeout((int) longestVacuum.toSeconds());
                running = statement;
                if (!vacuumEnds) {
                    NetworkTimeout.limiting(
                            connection,
                            longestVacuum.plus(CANCELLATION),
                            () -> statement.execute(schema.in(VACUUM.formatted(mayBeParallel ? ", parallel 0" : ""))));
                }
            } finally {
                running = null;
                if (!autoCommit) {
                    connection.setAutoCommit(false);
                }
            }
        }
    }

    /**
     * Ends a vacuum that runs, and lets none begin any more. May be called from any thread.
     *
     * @return whether one was running, which a cancellation that came too early does not end
     */
    public boolean cancelVacuum() throws SQLException {
        vacuumEnds = true;
        Statement statement = running;
        if (statement == null) {
            return false;
        }
        statement.cancel();
        return true;
    }
}
