package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The advisory lock of a session that migrates a schema, which others that migrate wait for. */
final class MigrationLock {

    private static final Logger log = LoggerFactory.getLogger(MigrationLock.class);

    private static final String KEY = "pg_catalog.hashtextextended('pgworker schema ' || ?::pg_catalog.text, 0)";

    private static final Duration RETRY = Duration.ofMillis(250);
    private static final Duration TOLD_AFTER = Duration.ofSeconds(10);

    private final WorkerSchema schema;

    MigrationLock(WorkerSchema schema) {
        this.schema = schema;
    }

    /**
     * Waits for others that migrate. Each try is a statement of its own: one that waited in the server would be a transaction
     * that the concurrent build of an index, which the holder of the lock may be at, waits for.
     */
    void take(Connection connection) throws SQLException {
        long begin = System.nanoTime();
        boolean told = false;
        while (!tryToTake(connection)) {
            if (!told && System.nanoTime() - begin > TOLD_AFTER.toNanos()) {
                told = true;
                log.info("Schema {} is being migrated by another application; waiting for it", schema.name());
            }
            Pause.of(RETRY);
        }
    }

    private boolean tryToTake(Connection connection) throws SQLException {
        try (PreparedStatement statement =
                connection.prepareStatement("select pg_catalog.pg_try_advisory_lock(" + KEY + ")")) {
            statement.setString(1, schema.name());
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getBoolean(1);
            }
        }
    }

    /** Gives the lock back, unless it went with the connection. */
    void giveBack(Connection connection) throws SQLException {
        if (connection.isClosed()) {
            return;
        }
        try (PreparedStatement statement =
                connection.prepareStatement("select pg_catalog.pg_advisory_unlock(" + KEY + ")")) {
            statement.setString(1, schema.name());
            statement.execute();
        }
    }
}
