package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

import org.flywaydb.core.api.FlywayException;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.jdbc.LocalSettings;

/**
 * Makes changes in one transaction that has the lock of migrations, and tries them again whose locks others hold. Nothing is left
 * on the session, which a connection pooler may give to others.
 */
final class PatientMigration {

    private static final Logger log = WorkerLog.of(PatientMigration.class);

    /**
     * How long a migration waits for its locks, and others behind it: less than half the usual {@code deadlock_timeout}. It may
     * run for as long as it needs, and names are those of the system.
     */
    private static final String SETTINGS = """
            lock_timeout=400ms statement_timeout=0 idle_in_transaction_session_timeout=0 transaction_timeout=0 search_path=pg_catalog,pg_temp""";

    /** How long a migration is tried again that did not get its locks. */
    private static final Duration PATIENCE = Duration.ofMinutes(1);

    private static final Duration FIRST_PAUSE = Duration.ofMillis(250);
    private static final Duration LONGEST_PAUSE = Duration.ofSeconds(2);

    private final WorkerSchema schema;
    private final Duration patienceWithOthers;

    /**
     * Creates what migrates one schema.
     *
     * @param patienceWithOthers how long to wait for others that migrate
     */
    PatientMigration(WorkerSchema schema, Duration patienceWithOthers) {
        this.schema = schema;
        this.patienceWithOthers = patienceWithOthers;
    }

    /** A change that may find its locks taken. */
    @FunctionalInterface
    interface Attempt<T> {

        /**
         * Makes the change.
         *
         * @param connection in the transaction, which the change cannot end
         */
        T run(Connection connection) throws SQLException;
    }

    /**
     * Does something that needs locks which others may hold: each try waits for a short time, as all who come later wait behind
     * it, and between tries they have time to continue.
     *
     * @param connection commits by itself
     */
    <T> T run(Connection connection, Attempt<T> attempt) throws SQLException {
        long begin = System.nanoTime();
        Duration pause = FIRST_PAUSE;
        int tries = 0;
        String settings = LocalSettings.statement(connection, SETTINGS);
        MigrationLock lock = new MigrationLock(schema, patienceWithOthers);
        while (true) {
            tries++;
            try (Statement statement = connection.createStatement()) {
                connection.setAutoCommit(false);
                statement.execute(settings);
                if (lock.tryToTake(connection)) {
                    T result = attempt.run(PinnedConnection.of(connection));
                    connection.commit();
                    return result;
                }
            } catch (SQLException | FlywayException e) {
                if (!Contention.isCauseOf(e)) {
                    throw e;
                }
                endTransaction(connection);
                if (System.nanoTime() - begin >= PATIENCE.toNanos()) {
                    throw new SchemaException(
                            "Schema \"" + schema.name()
                                    + "\" could not be migrated: its tables were in use at each of"
                                    + " " + tries + " attempts within " + PATIENCE.toSeconds() + " s."
                                    + Contention.holders(connection, schema),
                            "End long transactions on these tables, or wait for them, and start again: nothing has been"
                                    + " changed.",
                            e);
                }
                log.info(
                        "Schema {}: tables are in use, the migration is retried ({})",
                        schema.name(),
                        String.valueOf(SchemaFailures.messageOf(e)));
                Pause.of(pause.plusMillis(ThreadLocalRandom.current().nextLong(pause.toMillis())));
                pause = pause.multipliedBy(2).compareTo(LONGEST_PAUSE) < 0 ? pause.multipliedBy(2) : LONGEST_PAUSE;
                continue;
            } finally {
                endTransaction(connection);
            }
            lock.awaitOthers(connection);
            // What others did with the lock is not what this one waits for.
            begin = System.nanoTime();
            tries = 0;
        }
    }

    private static void endTransaction(Connection connection) throws SQLException {
        if (!connection.isClosed() && !connection.getAutoCommit()) {
            connection.rollback();
            connection.setAutoCommit(true);
        }
    }
}
