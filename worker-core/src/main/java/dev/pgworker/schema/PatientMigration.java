package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

import org.flywaydb.core.api.FlywayException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Tries changes again whose locks others hold. */
final class PatientMigration {

    private static final Logger log = LoggerFactory.getLogger(PatientMigration.class);

    /** How long a migration waits for its locks, and others behind it: less than half the usual {@code deadlock_timeout}. */
    private static final Duration LOCK_PATIENCE = Duration.ofMillis(400);

    /** How long a migration is tried again that did not get its locks. */
    private static final Duration PATIENCE = Duration.ofMinutes(1);

    private static final Duration FIRST_PAUSE = Duration.ofMillis(250);
    private static final Duration LONGEST_PAUSE = Duration.ofSeconds(2);

    private final WorkerSchema schema;

    PatientMigration(WorkerSchema schema) {
        this.schema = schema;
    }

    /** A change that may find its locks taken. */
    @FunctionalInterface
    interface Attempt {
        void run() throws SQLException;
    }

    /**
     * Does something that needs locks which others may hold: each try waits for a short time, as all who come later wait behind
     * it, and between tries they have time to go on.
     */
    void run(Connection connection, Attempt attempt) throws SQLException {
        long begin = System.nanoTime();
        Duration pause = FIRST_PAUSE;
        int tries = 0;
        SessionLimits before = SessionLimits.of(connection, LOCK_PATIENCE);
        try {
            while (true) {
                tries++;
                try {
                    attempt.run();
                    return;
                } catch (SQLException | FlywayException e) {
                    if (!Contention.isCauseOf(e)) {
                        throw e;
                    }
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
                }
                Pause.of(pause.plusMillis(ThreadLocalRandom.current().nextLong(pause.toMillis())));
                pause = pause.multipliedBy(2).compareTo(LONGEST_PAUSE) < 0 ? pause.multipliedBy(2) : LONGEST_PAUSE;
            }
        } finally {
            before.putBack();
        }
    }
}
