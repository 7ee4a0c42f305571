package dev.pgworker.store;

import java.sql.SQLException;
import javax.sql.DataSource;

import dev.pgworker.schema.WorkerSchema;

/** The register of live workers, shared with the Rust worker's recovery. */
public final class WorkerStore {

    private final DataSource dataSource;
    private final WorkerSchema schema;

    /** Creates a store for one schema. */
    public WorkerStore(DataSource dataSource, WorkerSchema schema) {
        this.dataSource = dataSource;
        this.schema = schema;
    }

    private static final String HEARTBEAT = """
            select {schema}.worker_heartbeat(?, ?::json)
            """;

    /** Registers the worker, or tells that it is alive. */
    public void heartbeat(String workerId, String metadata) throws SQLException {
        Connections.call(dataSource, schema.in(HEARTBEAT), (connection, statement) -> {
            statement.setString(1, workerId);
            statement.setString(2, metadata);
            return statement.execute();
        });
    }

    private static final String DEREGISTER = """
            select {schema}.worker_deregister(?)
            """;

    /** Removes the worker from the register. */
    public void deregister(String workerId) throws SQLException {
        Connections.call(dataSource, schema.in(DEREGISTER), (connection, statement) -> {
            statement.setString(1, workerId);
            return statement.execute();
        });
    }
}
