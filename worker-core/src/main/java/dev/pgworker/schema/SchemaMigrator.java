package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import javax.sql.DataSource;

import org.flywaydb.core.api.FlywayException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.jdbc.Pooler;

/**
 * Installs, adopts and validates the schema with a separate Flyway, whose history is stored in the schema. The
 * application's own Flyway, if any, is not affected.
 *
 * <p>Every method takes one connection from the data source and uses it until it returns; a pool with one connection is
 * sufficient. It leaves no setting, lock, prepared statement or temporary object on the session, so that the connection
 * may lead through a connection pooler. Any number of applications may start at the same time: a lock lets one of them
 * migrate while the others wait, five minutes at most, and then find nothing to do.
 *
 * <p>Jobs can be added and run during a migration, by workers of any kind. A migration waits less than half a second
 * for a lock, so that other sessions do not wait longer for the migration, and retries if it does not get the lock; it
 * fails after a minute. Indexes are built concurrently afterwards, before the method returns.
 *
 * @since 0.1.0
 */
public final class SchemaMigrator {

    private static final Logger log = WorkerLog.of(SchemaMigrator.class);

    /** How often to look whether a server has started up. */
    private static final Duration RETRY = Duration.ofMillis(250);

    /** How long to wait for others that migrate. */
    static final Duration LONGEST_WAIT = Duration.ofMinutes(5);

    static final String MIGRATIONS = "dev/pgworker/schema/migration";

    private final DataSource dataSource;
    private final WorkerSchema schema;
    private final MigrationHistory history;
    private final PatientMigration patiently;
    private final SchemaIndexes indexes;

    /**
     * Creates a migrator for one schema that leaves the indexes of other Graphile Workers unchanged. The data source's
     * user needs the privileges documented for each method.
     */
    public SchemaMigrator(DataSource dataSource, WorkerSchema schema) {
        this(dataSource, schema, PeerIndexes.AUTO);
    }

    /**
     * Creates a migrator for one schema. The data source's user needs the privileges documented for each method.
     *
     * @param peerIndexes what happens to the indexes that only other Graphile Workers need
     */
    public SchemaMigrator(DataSource dataSource, WorkerSchema schema, PeerIndexes peerIndexes) {
        this(dataSource, schema, peerIndexes, MIGRATIONS, LONGEST_WAIT);
    }

    /**
     * Creates a migrator.
     *
     * @param location where on the classpath the migrations are
     * @param patience how long to wait for others that migrate
     */
    SchemaMigrator(
            DataSource dataSource, WorkerSchema schema, PeerIndexes peerIndexes, String location, Duration patience) {
        this.dataSource = dataSource;
        this.schema = schema;
        this.history = new MigrationHistory(schema, location);
        this.patiently = new PatientMigration(schema, patience);
        this.indexes = new SchemaIndexes(schema, peerIndexes);
    }

    /**
     * Migrates or validates the schema, or does neither, according to the mode.
     *
     * @throws SchemaException if that is not possible; the message has what to do about it
     */
    public void apply(SchemaMode mode) {
        switch (Objects.requireNonNull(mode, "mode")) {
            case MIGRATE -> migrate();
            case VALIDATE -> validate();
            case NONE -> log.debug("Schema {} is used as it is", schema.name());
        }
    }

    /**
     * Same as {@link #apply(SchemaMode)}, but waits for a server that reports that it is starting up, as after a crash
     * or a restart.
     *
     * @param startupTimeout maximum time to wait; the last attempt may begin just before it has elapsed
     * @throws SchemaException if that is not possible; the message has what to do about it
     */
    public void apply(SchemaMode mode, Duration startupTimeout) {
        long begin = System.nanoTime();
        boolean told = false;
        while (true) {
            try {
                apply(mode);
                return;
            } catch (SchemaException e) {
                boolean startingUp = isStartingUp(e);
                if (!startingUp && !(told && isUnreachable(e))) {
                    throw e;
                }
                if (System.nanoTime() - begin >= startupTimeout.toNanos()) {
                    throw new SchemaException(
                            "PostgreSQL is still starting up, after " + startupTimeout.toSeconds() + " s.",
                            "See the server's log for what it is doing, or give it more time"
                                    + " (pgworker.schema.startup-timeout).",
                            e);
                }
                if (!told) {
                    told = true;
                    log.warn(
                            "PostgreSQL is starting up; waiting for it, up to {} s (pgworker.schema.startup-timeout)",
                            startupTimeout.toSeconds());
                }
            }
            Pause.of(RETRY);
        }
    }

    private static boolean isStartingUp(SchemaException failure) {
        return SchemaFailures.stateOf(failure).equals("57P03");
    }

    /** A server that starts up may be restarted meanwhile. */
    private static boolean isUnreachable(SchemaException failure) {
        return SchemaFailures.stateOf(failure).startsWith("08");
    }

    /**
     * Installs the schema, adopts the installation of a Node.js or Rust Graphile Worker with all its jobs, or brings an
     * earlier version up to date. If the schema is up to date, the user does not need any privilege to change it.
     *
     * @throws SchemaException if the server is too old, if the migration ledger is unknown, if a privilege is missing,
     *     if the locks on the tables could not be obtained within a minute, or if others migrate for five minutes
     */
    public void migrate() {
        run(connection -> {
            check(connection);
            ledger(connection).check(schema);
            if (isInPlace(connection)) {
                return null;
            }
            Ledger found = ledger(connection);
            if (!found.ours()) {
                new Adoption(connection, schema).check(found);
            }
            patiently
                    .run(connection, this::bringUpToDate)
                    .ifPresent(before -> log.info("Schema {} is {}", schema.name(), before.describeMigration()));
            restoreFunctions(connection);
            indexes.build(connection);
            return null;
        });
    }

    /** Returns what was there before; nothing if others have migrated meanwhile. */
    private Optional<Ledger> bringUpToDate(Connection connection) throws SQLException {
        Ledger ledger = ledger(connection);
        ledger.check(schema);
        if (ledger.ours() && history.read(connection).isUpToDate()) {
            return Optional.empty();
        }
        new MigrationRights(schema).check(connection);
        history.migrate(connection);
        return Optional.of(ledger);
    }

    /**
     * Validates that the schema is installed and up to date, without changing anything.
     *
     * @throws SchemaException if it is not
     */
    public void validate() {
        run(connection -> {
            check(connection);
            Ledger ledger = ledger(connection);
            ledger.check(schema);
            if (!ledger.ours()) {
                throw new SchemaException(
                        "Schema \"" + schema.name() + "\" is not installed.",
                        "Start once with pgworker.schema.mode=migrate and a user that may create the schema.");
            }
            MigrationHistory.State state = upToDate(connection);
            List<String> replaced = replacedFunctions(connection, state);
            if (!replaced.isEmpty()) {
                tellReplaced(replaced);
            }
            indexes.tellSteps(connection);
            return null;
        });
    }

    private MigrationHistory.State upToDate(Connection connection) throws SQLException {
        MigrationHistory.State state = history.read(connection);
        if (!state.isUpToDate()) {
            throw new SchemaException(
                    "Schema \"" + schema.name() + "\" is not up to date" + differences(state) + ".",
                    "Start once with pgworker.schema.mode=migrate and a user that owns the schema.");
        }
        return state;
    }

    private static String differences(MigrationHistory.State state) {
        List<String> differences = new ArrayList<>();
        if (!state.missing().isEmpty()) {
            differences.add("not applied: " + String.join(", ", state.missing()));
        }
        if (!state.outdated().isEmpty()) {
            differences.add("functions of another version: " + String.join(", ", state.outdated()));
        }
        return differences.isEmpty() ? "" : " (" + String.join("; ", differences) + ")";
    }

    /**
     * Checks that a worker can use connections of the data source, without looking at the schema.
     *
     * @throws SchemaException if the database cannot be reached or is too old, or if a connection pooler allows no
     *     transactions, or passes prepared statements on to sessions that it shares
     */
    public void checkConnections() {
        run(connection -> {
            check(connection);
            return null;
        });
    }

    /**
     * Returns the version of the installed schema, using some short queries.
     *
     * @throws SchemaException if the schema is not installed, not up to date or cannot be read
     */
    public String version() {
        String installed = run(connection -> {
            String found = history.version(connection);
            if (found != null) {
                MigrationHistory.State unused = upToDate(connection);
            }
            return found;
        });
        if (installed == null) {
            throw new SchemaException(
                    "Schema \"" + schema.name() + "\" is not installed.",
                    "Start an application with pgworker.schema.mode=migrate and a user that may create the schema.");
        }
        return installed;
    }

    private void check(Connection connection) throws SQLException {
        ServerCheck.check(connection);
        Pooler.Problem problem = Pooler.problem(connection, dataSource);
        if (problem != null) {
            throw new SchemaException(problem.text(), problem.action());
        }
    }

    private boolean isInPlace(Connection connection) throws SQLException {
        if (!ledger(connection).ours()) {
            return false;
        }
        MigrationHistory.State state = history.read(connection);
        return state.isUpToDate()
                && replacedFunctions(connection, state).isEmpty()
                && indexes.steps(connection).isEmpty();
    }

    private Ledger ledger(Connection connection) throws SQLException {
        return Ledger.read(connection, schema, history);
    }

    /** Only the version that has migrated a schema has the newest definitions of functions that other Graphile Workers know too. */
    private List<String> replacedFunctions(Connection connection, MigrationHistory.State state) throws SQLException {
        return state.newer() ? List.of() : new SharedFunctions(schema, state.applied()).replaced(connection);
    }

    private void restoreFunctions(Connection connection) throws SQLException {
        MigrationHistory.State state = history.read(connection);
        List<String> replaced = replacedFunctions(connection, state);
        if (replaced.isEmpty()) {
            return;
        }
        SharedFunctions functions = new SharedFunctions(schema, state.applied());
        if (!functions.mayRestore(connection)) {
            tellReplaced(replaced);
            return;
        }
        patiently.run(connection, inside -> {
            functions.restore(inside, replaced);
            return replaced;
        });
        log.info(
                "Functions that another Graphile Worker had replaced in schema {} have been restored: {}",
                schema.name(),
                String.join(", ", replaced));
    }

    private void tellReplaced(List<String> functions) {
        log.warn(
                "Another Graphile Worker has replaced functions in schema {} ({}); a start with pgworker.schema.mode=migrate and a"
                        + " user that owns them restores them",
                schema.name(),
                String.join(", ", functions));
    }

    private @Nullable String run(Work work) {
        try (Connection connection = dataSource.getConnection()) {
            boolean autoCommit = connection.getAutoCommit();
            connection.setAutoCommit(true);
            try {
                return work.on(connection);
            } finally {
                restoreAutoCommit(connection, autoCommit);
            }
        } catch (SQLException | FlywayException e) {
            throw SchemaFailures.translate(schema, e);
        }
    }

    private static void restoreAutoCommit(Connection connection, boolean autoCommit) throws SQLException {
        if (!connection.isClosed()) {
            connection.setAutoCommit(autoCommit);
        }
    }

    /** Something done on the one connection of a call; its answer, null for none. */
    @FunctionalInterface
    private interface Work {
        @Nullable String on(Connection connection) throws SQLException;
    }
}
