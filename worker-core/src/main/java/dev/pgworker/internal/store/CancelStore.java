package dev.pgworker.internal.store;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import javax.sql.DataSource;

import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.schema.WorkerSchema;

/** Which running jobs of one worker have been cancelled. Plain JDBC, for the reason that the package gives. */
public final class CancelStore {

    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

    private final DataSource dataSource;
    private final WorkerSchema schema;
    private final String workerId;

    /** Creates a store for one worker. */
    public CancelStore(DataSource dataSource, WorkerSchema schema, String workerId) {
        this.dataSource = dataSource;
        this.schema = schema;
        this.workerId = workerId;
    }

    private static final String REQUESTED = """
            select c.job_id, j.locked_at
            from {schema}.pgworker_cancellations c
            cross join lateral (
              select h.locked_at, h.locked_by from {schema}._private_jobs h where h.id = c.job_id offset 0) j
            where c.worker_id = ?::pg_catalog.text and c.outcome is null and j.locked_by = c.worker_id and j.locked_at is not null
            """;

    /** Reads which of the jobs that this worker holds are cancelled, each with the time of its lock. */
    public Set<Claim> requested() throws SQLException {
        return Connections.call(dataSource, schema.in(REQUESTED), ANSWER_LIMIT, (connection, statement) -> {
            statement.setString(1, workerId);
            Set<Claim> requested = new HashSet<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    requested.add(new Claim(rows.getLong(1), Timestamps.instant(rows, 2)));
                }
            }
            return requested;
        });
    }

    private static final String ANY = """
            select exists (select from {schema}.pgworker_cancellations)
            """;

    /** Returns whether a running job of any worker has been cancelled lately. */
    public boolean isAny() throws SQLException {
        return Connections.call(dataSource, schema.in(ANY), ANSWER_LIMIT, (connection, statement) -> {
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getBoolean(1);
            }
        });
    }

    private static final String TEND = """
            select {schema}.pgworker_tend_cancellations()
            """;

    /** Ends and forgets cancellations of all workers, as far as that was not done. */
    public void tend() throws SQLException {
        Connections.call(dataSource, schema.in(TEND), ANSWER_LIMIT, (connection, statement) -> statement.execute());
    }
}
