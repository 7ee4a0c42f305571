package dev.pgworker.internal.store;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.time.Duration;
import java.time.Instant;
import javax.sql.DataSource;

import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.schema.WorkerSchema;

/** Which worker cleans up at a time. Plain JDBC, for the reason that the package gives. */
public final class CleanupStore {

    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

    private final DataSource dataSource;
    private final WorkerSchema schema;

    /** Creates a store for one schema. */
    public CleanupStore(DataSource dataSource, WorkerSchema schema) {
        this.dataSource = dataSource;
        this.schema = schema;
    }

    private static final String NOW = """
            select pg_catalog.clock_timestamp()
            """;

    /** Returns the database's time. */
    public Instant now() throws SQLException {
        return Connections.call(dataSource, NOW, ANSWER_LIMIT, (connection, statement) -> {
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getTimestamp(1).toInstant();
            }
        });
    }

    // Times in the future, which a clock that was set back leaves behind, count for nothing.
    private static final String BEGIN = """
            insert into {schema}.pgworker_cleanup as c (due_at, busy_until)
            values (?, pg_catalog.clock_timestamp() + interval '1 hour')
            on conflict on constraint pgworker_cleanup_pkey do update
            set due_at = excluded.due_at, busy_until = excluded.busy_until
            where (c.due_at < excluded.due_at or c.due_at > pg_catalog.clock_timestamp())
              and (c.busy_until <= pg_catalog.clock_timestamp() or c.busy_until > excluded.busy_until)
            """;

    /**
     * Takes over the clean-up that is due at a time, for an hour at most.
     *
     * @return false if another worker has done so, or is still at an earlier one
     */
    public boolean begin(Instant dueAt) throws SQLException {
        return Connections.call(dataSource, schema.in(BEGIN), ANSWER_LIMIT, (connection, statement) -> {
            statement.setTimestamp(1, Timestamp.from(dueAt));
            return statement.executeUpdate() == 1;
        });
    }

    private static final String END = """
            update {schema}.pgworker_cleanup set busy_until = pg_catalog.clock_timestamp() where due_at = ?
            """;

    /** Notes that it is done. */
    public void end(Instant dueAt) throws SQLException {
        Connections.call(dataSource, schema.in(END), ANSWER_LIMIT, (connection, statement) -> {
            statement.setTimestamp(1, Timestamp.from(dueAt));
            return statement.executeUpdate();
        });
    }
}
