package dev.pgworker.internal.store;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.PrivateConnections;
import dev.pgworker.schema.WorkerSchema;

/** The register of live workers, shared with the Rust worker's recovery.Plain JDBC, for the reason that the package gives. */
public final class WorkerStore {

    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

    /** For statements that may read all jobs. */
    private static final Duration LONG_ANSWER_LIMIT = Duration.ofMinutes(1);

    private final DataSource dataSource;
    private final WorkerSchema schema;

    /** Creates a store for one schema. */
    public WorkerStore(DataSource dataSource, WorkerSchema schema) {
        this.dataSource = dataSource;
        this.schema = schema;
    }

    /**
     * Creates a store that keeps a connection of its own open between the calls, until {@link #close}.
     *
     * @param source where the connection comes from
     * @param pool where connections come from while the server refuses those of the source
     */
    public static WorkerStore withOwnConnection(DataSource source, DataSource pool, WorkerSchema schema) {
        return new WorkerStore(PrivateConnections.keeping(source, pool), schema);
    }

    /** Closes the connection that is kept, if one is. */
    public void close() {
        if (dataSource instanceof PrivateConnections own) {
            own.close();
        }
    }

    private static final String HEARTBEAT = """
            select {schema}.pgworker_heartbeat(?, ?::pg_catalog.json, ?)
            """;

    /**
     * Registers the worker, or reports that a registered one is alive. A connection that does not answer is given up
     * soon, because the next one may. Asks for nothing else: a lock of another table does not end workers.
     *
     * @return false if the worker was not to be registered and is so no longer: a sweep considers it dead
     */
    public boolean heartbeat(String workerId, String metadata, boolean register) throws SQLException {
        return Connections.call(dataSource, schema.in(HEARTBEAT), ANSWER_LIMIT, (connection, statement) -> {
            statement.setString(1, workerId);
            statement.setString(2, metadata);
            statement.setBoolean(3, register);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getBoolean(1);
            }
        });
    }

    private static final String DEREGISTER = """
            select {schema}.worker_deregister(?)
            """;

    /** Removes the worker from the register. */
    public void deregister(String workerId) throws SQLException {
        Connections.call(dataSource, schema.in(DEREGISTER), ANSWER_LIMIT, (connection, statement) -> {
            statement.setString(1, workerId);
            return statement.execute();
        });
    }

    private static final String PEER_INDEX = """
            select 'create index concurrently ' || name || ' on {schema}.' || relation || ' ' || definition
            from {schema}.pgworker_indexes() where name = 'jobs_main_index'
            """;

    /** Returns the statement that makes the index that workers of Node.js and Rust fetch with. */
    public String peerIndex() throws SQLException {
        return Connections.call(dataSource, schema.in(PEER_INDEX), ANSWER_LIMIT, (connection, statement) -> {
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getString(1);
            }
        });
    }

    private static final String RELEASE_OLD_LOCKS = """
            select released, unindexed_peer from {schema}.pgworker_release_old_locks()
            """;

    /**
     * What became of old locks.
     *
     * @param released how many jobs were unlocked
     * @param unindexedPeer the id of a worker of Node.js or Rust that was seen where the index that those fetch with is
     *     missing, or null
     */
    public record OldLocks(long released, @Nullable String unindexedPeer) {}

    /** Releases locks of four hours or more of workers that sends no heartbeat. */
    public OldLocks releaseOldLocks() throws SQLException {
        return Connections.call(
                dataSource, schema.in(RELEASE_OLD_LOCKS), LONG_ANSWER_LIMIT, (connection, statement) -> {
                    try (ResultSet row = statement.executeQuery()) {
                        row.next();
                        return new OldLocks(row.getLong(1), row.getString(2));
                    }
                });
    }
}
