package dev.pgworker.store;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.schema.WorkerSchema;

/** Upkeep of the table of jobs. Each method takes a connection of its own from the pool. */
public final class JobsTable {

    private final DataSource dataSource;
    private final WorkerSchema schema;

    private final Duration longestVacuum;

    private volatile @Nullable Statement running;
    private volatile boolean vacuumEnds;

    /** Creates the upkeep of one schema's table. */
    public JobsTable(DataSource dataSource, WorkerSchema schema) {
        this(dataSource, schema, LONGEST_VACUUM);
    }

    /**
     * Creates the upkeep of one schema's table.
     *
     * @param longestVacuum when a vacuum is given up, in whole seconds
     */
    public JobsTable(DataSource dataSource, WorkerSchema schema, Duration longestVacuum) {
        this.dataSource = dataSource;
        this.schema = schema;
        this.longestVacuum = longestVacuum;
    }

    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

    // From version 17 on, VACUUM can be granted; the privilege is unknown to earlier ones.
    private static final String MAY_VACUUM = """
            select pg_has_role(c.relowner, 'USAGE')
              or exists (select from pg_database d where d.datname = current_database() and pg_has_role(d.datdba, 'USAGE'))
              or case when current_setting('server_version_num')::int >= 170000
                then has_table_privilege(c.oid, 'MAINTAIN') else false end
            from pg_class c where c.oid = '{schema}._private_jobs'::regclass
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
            select extract(epoch from clock_timestamp() - greatest(
              pg_stat_get_last_vacuum_time(c.oid), pg_stat_get_last_autovacuum_time(c.oid)))
            from pg_class c where c.oid = '{schema}._private_jobs'::regclass
            """;

    /** Returns how long ago the table was vacuumed by anybody; null if the statistics do not tell. */
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

    // TRUNCATE would lock the table against everybody. Without SKIP_LOCKED it would wait for another vacuum of the
    // table.
    private static final String VACUUM = """
            vacuum (truncate off, index_cleanup on, skip_locked %s) {schema}._private_jobs
            """;

    /** Indexes of tens of GB take minutes, and one that is cancelled has removed nothing from them. */
    private static final Duration LONGEST_VACUUM = Duration.ofHours(1);

    /** How long after its cancellation a vacuum's connection is given up, which may be dead without anybody having said so. */
    private static final Duration CANCELLATION = Duration.ofMinutes(1);

    /**
     * Removes what finished jobs left behind, unless somebody else is doing so.
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
                    Connections.answered(
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
