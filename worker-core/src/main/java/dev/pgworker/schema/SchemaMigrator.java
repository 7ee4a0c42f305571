package dev.pgworker.schema;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import javax.sql.DataSource;

import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.FlywayException;
import org.flywaydb.core.api.MigrationInfo;
import org.flywaydb.core.api.MigrationInfoService;
import org.flywaydb.core.api.MigrationState;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;

/**
 * Installs, adopts and checks the schema with a Flyway of its own, whose history lives inside the schema. The
 * application's Flyway, if it has one, is not touched.
 *
 * <p>Every method takes one connection from the data source, holds it while it runs and returns it as it was; a pool of
 * one is enough. Any number of applications may start at the same time: an advisory lock lets one migrate while the
 * others wait and then find nothing to do.
 *
 * <p>Jobs are added and run meanwhile, by workers of any kind. A migration waits for a lock for less than half a second, so that
 * nobody waits for it any longer, and tries again when it got none; it fails after a minute. Indexes are built concurrently
 * afterwards, before this returns.
 */
public final class SchemaMigrator {

    private static final Logger log = LoggerFactory.getLogger(SchemaMigrator.class);

    private static final Duration RETRY = Duration.ofMillis(250);

    private static final String MIGRATIONS = "dev/pgworker/schema/migration";

    /** How long a migration waits for its locks, and others behind it: less than half the usual {@code deadlock_timeout}. */
    private static final Duration LOCK_PATIENCE = Duration.ofMillis(400);

    /** How long a migration is tried again that did not get its locks. */
    private static final Duration PATIENCE = Duration.ofMinutes(1);

    private static final Duration LONGEST_PAUSE = Duration.ofSeconds(2);

    private static final Duration TOLD_AFTER = Duration.ofSeconds(10);

    private static final String LOCK = "pg_catalog.hashtextextended('pgworker schema ' || ?::pg_catalog.text, 0)";
    private static final String HISTORY_TABLE = "worker_flyway_history";
    private static final int OLDEST_SERVER = 120000;

    /** Ids of the shared ledger, {@code migrations}: Node.js has 18 to 20, and Rust, whose ids above 20 are its own, up to 22. */
    private static final int OLDEST_ADOPTED_LEDGER = 18;

    private static final int NEWEST_SHARED_LEDGER = 20;
    private static final int NEWEST_KNOWN_LEDGER = 22;

    private final DataSource dataSource;
    private final WorkerSchema schema;
    private final SchemaIndexes indexes;
    private final List<String> locations;

    /**
     * Creates a migrator for one schema that leaves the indexes of other Graphile Workers as they are; the data source's user
     * needs the privileges that each method names.
     */
    public SchemaMigrator(DataSource dataSource, WorkerSchema schema) {
        this(dataSource, schema, PeerIndexes.AUTO);
    }

    /**
     * Creates a migrator for one schema; the data source's user needs the privileges that each method names.
     *
     * @param peerIndexes what happens to the indexes that only other Graphile Workers need
     */
    public SchemaMigrator(DataSource dataSource, WorkerSchema schema, PeerIndexes peerIndexes) {
        this(dataSource, schema, peerIndexes, List.of(MIGRATIONS));
    }

    /** Creates a migrator that finds its migrations in these places on the classpath. */
    SchemaMigrator(DataSource dataSource, WorkerSchema schema, PeerIndexes peerIndexes, List<String> locations) {
        this.dataSource = dataSource;
        this.schema = schema;
        this.indexes = new SchemaIndexes(schema, peerIndexes);
        this.locations = locations;
    }

    /**
     * Does what the mode says.
     *
     * @throws SchemaException if that is not possible, with what to do about it
     */
    public void apply(SchemaMode mode) {
        switch (mode) {
            case MIGRATE -> migrate();
            case VALIDATE -> validate();
            case NONE -> log.debug("Schema {} is used as it is", schema.name());
        }
    }

    /**
     * As {@link #apply(SchemaMode)}, but waits for a server that says that it is starting up, as after a crash or a restart.
     *
     * @param startupTimeout how long at most; the last attempt may begin just before
     * @throws SchemaException if that is not possible, with what to do about it
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
                                    + " (worker.schema.startup-timeout).",
                            e);
                }
                if (!told) {
                    told = true;
                    log.warn(
                            "PostgreSQL is starting up; waiting for it, up to {} s (worker.schema.startup-timeout)",
                            startupTimeout.toSeconds());
                }
            }
            pause(RETRY);
        }
    }

    private static void pause(Duration time) {
        try {
            Thread.sleep(time.toMillis());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new SchemaException("The start was interrupted while it waited.", "Start the application again.");
        }
    }

    private static boolean isStartingUp(SchemaException failure) {
        return stateOf(failure).equals("57P03");
    }

    /** A server that starts up may be restarted meanwhile. */
    private static boolean isUnreachable(SchemaException failure) {
        return stateOf(failure).startsWith("08");
    }

    private static String stateOf(Throwable failure) {
        SQLException sql = sqlException(failure);
        return sql == null || sql.getSQLState() == null ? "" : sql.getSQLState();
    }

    /**
     * Installs the schema, adopts the installation of a Node.js or Rust Graphile Worker with all its jobs, or brings an
     * earlier version up to date. A user without any right to change the schema may call this when it is up to date.
     *
     * @throws SchemaException if the server is too old, the ledger unknown, a privilege missing, or if others did not leave the
     *     tables alone for a moment within a minute
     */
    public void migrate() {
        run(connection -> {
            checkServer(connection);
            readLedger(connection).check(schema);
            if (isInPlace(connection)) {
                return;
            }
            lock(connection);
            try {
                Ledger ledger = readLedger(connection);
                ledger.check(schema);
                if (!ledger.ours || !isUpToDate(connection)) {
                    checkMayMigrate(connection);
                    patiently(connection, flyway(connection)::migrate);
                    log.info("Schema {} is {}", schema.name(), ledger.describeMigration());
                }
                restoreFunctions(connection);
                indexes.build(connection);
            } finally {
                unlock(connection);
            }
        });
    }

    /**
     * Checks that the schema is installed and up to date, and changes nothing.
     *
     * @throws SchemaException if it is not
     */
    public void validate() {
        run(connection -> {
            checkServer(connection);
            Ledger ledger = readLedger(connection);
            ledger.check(schema);
            if (!ledger.ours) {
                throw new SchemaException(
                        "Schema \"" + schema.name()
                                + "\" is not installed, and worker.schema.mode=validate forbids to.",
                        "Start once with worker.schema.mode=migrate and a user that may create the schema.");
            }
            if (!isUpToDate(connection)) {
                throw new SchemaException(
                        "Schema \"" + schema.name() + "\" is not up to date, and worker.schema.mode=validate forbids to"
                                + " change it.",
                        "Start once with worker.schema.mode=migrate and a user that owns the schema.");
            }
            List<String> replaced = replacedFunctions(connection);
            if (!replaced.isEmpty()) {
                tellReplaced(replaced);
            }
            indexes.tellSteps(connection);
        });
    }

    /**
     * Returns the version of the installed schema, as one short query tells.
     *
     * @throws SchemaException if the schema is not installed or cannot be read
     */
    public String version() {
        String sql = schema.in("""
                select version from {schema}.%s where success and version is not null order by installed_rank desc limit 1
                """.formatted(HISTORY_TABLE));
        @Nullable String[] version = new @Nullable String[1];
        run(connection -> {
            try (Statement statement = connection.createStatement()) {
                if (exists(connection, HISTORY_TABLE)) {
                    try (ResultSet row = statement.executeQuery(sql)) {
                        version[0] = row.next() ? row.getString(1) : null;
                    }
                }
            }
        });
        String installed = version[0];
        if (installed == null) {
            throw new SchemaException(
                    "Schema \"" + schema.name() + "\" is not installed.",
                    "Start an application with worker.schema.mode=migrate and a user that may create the schema.");
        }
        return installed;
    }

    private Flyway flyway(Connection connection) {
        return Flyway.configure(SchemaMigrator.class.getClassLoader())
                .dataSource(new SingleConnectionDataSource(connection, true))
                .schemas(schema.name())
                .defaultSchema(schema.name())
                .createSchemas(true)
                .table(HISTORY_TABLE)
                .locations(locations.stream().map(l -> "classpath:" + l).toArray(String[]::new))
                .failOnMissingLocations(true)
                .placeholders(Map.of("schema", schema.name()))
                // A schema installed by another Graphile Worker has tables but no history of ours.
                .baselineOnMigrate(true)
                .baselineVersion("0")
                // During a rolling upgrade an older application meets the schema of a newer one.
                .ignoreMigrationPatterns("*:future")
                .cleanDisabled(true)
                .load();
    }

    private boolean isInPlace(Connection connection) throws SQLException {
        return readLedger(connection).ours
                && isUpToDate(connection)
                && replacedFunctions(connection).isEmpty()
                && indexes.steps(connection).isEmpty();
    }

    /**
     * Does something that needs locks which others may hold: each try waits for a short time, as all who come later wait behind
     * it, and between tries they have time to go on.
     */
    private void patiently(Connection connection, Attempt attempt) throws SQLException {
        long begin = System.nanoTime();
        Duration pause = RETRY;
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
                                        + "\" could not be migrated: its tables were in use whenever it was"
                                        + " tried, " + tries + " times within " + PATIENCE.toSeconds() + " s."
                                        + Contention.holders(connection, schema),
                                "End long transactions on these tables, or wait for them, and start again: nothing has been"
                                        + " changed.",
                                e);
                    }
                    log.info(
                            "Schema {}: tables are in use, the migration tries again ({})",
                            schema.name(),
                            String.valueOf(messageOf(e)));
                }
                pause(pause.plusMillis(ThreadLocalRandom.current().nextLong(pause.toMillis())));
                pause = pause.multipliedBy(2).compareTo(LONGEST_PAUSE) < 0 ? pause.multipliedBy(2) : LONGEST_PAUSE;
            }
        } finally {
            before.putBack();
        }
    }

    private static @Nullable String messageOf(Exception failure) {
        SQLException sql = sqlException(failure);
        return (sql == null ? failure : sql).getMessage();
    }

    /**
     * Returns the functions that other Graphile Workers know too, which one with a longer ledger replaces when it starts; null for
     * a schema that a newer version has migrated, as only that version has their definitions.
     */
    private @Nullable SharedFunctions sharedFunctions(Connection connection) throws SQLException {
        List<String> scripts = new ArrayList<>();
        for (MigrationInfo migration : info(connection).all()) {
            MigrationState state = migration.getState();
            if (state == MigrationState.FUTURE_SUCCESS) {
                return null;
            }
            if (state == MigrationState.SUCCESS && migration.getVersion() != null) {
                scripts.add(pathOf(migration.getScript()));
            }
        }
        return new SharedFunctions(schema, scripts);
    }

    private List<String> replacedFunctions(Connection connection) throws SQLException {
        SharedFunctions functions = sharedFunctions(connection);
        return functions == null ? List.of() : functions.replaced(connection);
    }

    private void restoreFunctions(Connection connection) throws SQLException {
        SharedFunctions functions = sharedFunctions(connection);
        List<String> replaced = functions == null ? List.of() : functions.replaced(connection);
        if (functions == null || replaced.isEmpty()) {
            return;
        }
        if (!functions.mayRestore(connection)) {
            tellReplaced(replaced);
            return;
        }
        patiently(connection, () -> functions.restore(connection, replaced));
        log.info(
                "Functions that another Graphile Worker had replaced in schema {} are restored: {}",
                schema.name(),
                String.join(", ", replaced));
    }

    private void tellReplaced(List<String> functions) {
        log.warn(
                "Another Graphile Worker has replaced functions in schema {} ({}); a start with worker.schema.mode=migrate and a"
                        + " user that owns them restores them",
                schema.name(),
                String.join(", ", functions));
    }

    private String pathOf(String script) {
        return locations.stream()
                .map(location -> location + "/" + script)
                .filter(path -> SchemaMigrator.class.getClassLoader().getResource(path) != null)
                .findFirst()
                .orElseThrow(() -> new IllegalStateException("There is no migration " + script));
    }

    /** Reads the history so that neither has the session's search path a say nor keeps the session what Flyway sets. */
    private MigrationInfoService info(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.execute("set local search_path = " + SessionLimits.SEARCH_PATH);
            return flyway(withoutEnd(connection)).info();
        } finally {
            connection.rollback();
            connection.setAutoCommit(true);
        }
    }

    /** A connection whose transaction its user cannot end. */
    private static Connection withoutEnd(Connection connection) {
        Set<String> passedOver = Set.of("setAutoCommit", "commit", "rollback", "close");
        return (Connection) Proxy.newProxyInstance(
                Connection.class.getClassLoader(), new Class<?>[] {Connection.class}, (proxy, method, args) -> {
                    if (passedOver.contains(method.getName())) {
                        return null;
                    }
                    try {
                        return method.invoke(connection, args);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                });
    }

    private boolean isUpToDate(Connection connection) throws SQLException {
        MigrationInfoService info = info(connection);
        for (var migration : info.all()) {
            if (migration.getState() == MigrationState.FAILED) {
                return false;
            }
        }
        return info.pending().length == 0;
    }

    /**
     * Waits for others that migrate. Each try is a statement of its own: one that waited in the server would be a transaction
     * that the concurrent build of an index, which the holder of the lock may be at, waits for.
     */
    private void lock(Connection connection) throws SQLException {
        long begin = System.nanoTime();
        boolean told = false;
        while (!isLocked(connection)) {
            if (!told && System.nanoTime() - begin > TOLD_AFTER.toNanos()) {
                told = true;
                log.info("Schema {} is being migrated by another application; waiting for it", schema.name());
            }
            pause(RETRY);
        }
    }

    private boolean isLocked(Connection connection) throws SQLException {
        try (PreparedStatement statement =
                connection.prepareStatement("select pg_catalog.pg_try_advisory_lock(" + LOCK + ")")) {
            statement.setString(1, schema.name());
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getBoolean(1);
            }
        }
    }

    private void unlock(Connection connection) throws SQLException {
        if (connection.isClosed()) {
            return;
        }
        try (PreparedStatement statement =
                connection.prepareStatement("select pg_catalog.pg_advisory_unlock(" + LOCK + ")")) {
            statement.setString(1, schema.name());
            statement.execute();
        }
    }

    private static void checkServer(Connection connection) throws SQLException {
        String product = connection.getMetaData().getDatabaseProductName();
        if (!product.equals("PostgreSQL")) {
            throw new SchemaException(
                    "The database is " + product + ", but PgWorker runs on PostgreSQL only.",
                    "Point spring.datasource.url to a PostgreSQL database, version 12 or later.");
        }
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(
                        "select pg_catalog.current_setting('server_version_num')::int, pg_catalog.current_setting('server_version'),"
                                + " pg_catalog.pg_is_in_recovery()")) {
            row.next();
            checkServerVersion(row.getInt(1), row.getString(2));
            if (row.getBoolean(3)) {
                log.warn(
                        "The server is a standby (pg_is_in_recovery), which is read-only: no job can be added or run until it"
                                + " is promoted. Add targetServerType=primary to the JDBC URL, with the addresses of all"
                                + " servers in it, or let it name the primary");
            }
        }
    }

    static void checkServerVersion(int number, String version) {
        if (number < OLDEST_SERVER) {
            throw new SchemaException(
                    "The server is PostgreSQL " + version + ", but PgWorker needs version 12 or later.",
                    "Upgrade the server; no earlier version is maintained.");
        }
    }

    private Ledger readLedger(Connection connection) throws SQLException {
        if (!exists(connection, "migrations")) {
            return new Ledger(false, null, null);
        }
        String sql = schema.in("""
                select pg_catalog.max(id), pg_catalog.max(id) filter (where breaking and id > %d) from {schema}.migrations
                """.formatted(NEWEST_SHARED_LEDGER));
        boolean ours = hasHistory(connection);
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(sql)) {
            row.next();
            return new Ledger(ours, row.getObject(1, Integer.class), row.getObject(2, Integer.class));
        }
    }

    /** A history without any migration is left behind by a first one that failed. */
    private boolean hasHistory(Connection connection) throws SQLException {
        if (!exists(connection, HISTORY_TABLE)) {
            return false;
        }
        String sql = schema.in(
                "select 1 from {schema}." + HISTORY_TABLE + " where success and type::pg_catalog.text = 'SQL' limit 1");
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(sql)) {
            return row.next();
        }
    }

    private boolean exists(Connection connection, String table) throws SQLException {
        String sql = """
                select 1 from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                where n.nspname = ?::pg_catalog.name and c.relname = ?::pg_catalog.name
                """;
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, schema.name());
            statement.setString(2, table);
            try (ResultSet row = statement.executeQuery()) {
                return row.next();
            }
        }
    }

    /** Tells what is missing before Flyway fails halfway through a statement. */
    private void checkMayMigrate(Connection connection) throws SQLException {
        String sql = """
                select current_user, pg_catalog.current_database() as current_database,
                       (select pg_catalog.has_schema_privilege(n.oid, 'CREATE')
                        from pg_catalog.pg_namespace n where n.nspname = s.name) as may_create_objects,
                       pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE') as may_create_schema,
                       (select pg_catalog.string_agg(distinct pg_catalog.pg_get_userbyid(c.relowner), ', ')
                        from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                        where n.nspname = s.name and c.relkind in ('r', 'v')
                          and not pg_catalog.pg_has_role(c.relowner, 'USAGE')) as foreign_owners
                from (select ?::pg_catalog.name as name) s
                """;
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, schema.name());
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                requirePrivileges(
                        row.getString("current_user"),
                        row.getString("current_database"),
                        row.getObject("may_create_objects", Boolean.class),
                        row.getBoolean("may_create_schema"),
                        row.getString("foreign_owners"));
            }
        }
    }

    private void requirePrivileges(
            String user,
            String database,
            @Nullable Boolean mayCreateObjects,
            boolean mayCreateSchema,
            @Nullable String foreignOwners) {
        String alternatives = " Or let a user that may do so migrate (worker.schema.user, worker.schema.password), or"
                + " start once with such a user and then use worker.schema.mode=validate.";
        if (mayCreateObjects == null && !mayCreateSchema) {
            throw new SchemaException(
                    "User \"%s\" may not create schema \"%s\" in database \"%s\"."
                            .formatted(user, schema.name(), database),
                    "Have an administrator run: CREATE SCHEMA \"%s\" AUTHORIZATION \"%s\";"
                                    .formatted(schema.name(), user)
                            + alternatives);
        }
        if (mayCreateObjects != null && !mayCreateObjects) {
            throw new SchemaException(
                    "User \"%s\" may not create tables and functions in schema \"%s\".".formatted(user, schema.name()),
                    "Have its owner run: GRANT CREATE, USAGE ON SCHEMA \"%s\" TO \"%s\";".formatted(schema.name(), user)
                            + alternatives);
        }
        if (foreignOwners != null) {
            throw new SchemaException(
                    "Schema \"%s\" has to be migrated, but its tables belong to \"%s\" and not to user \"%s\"."
                            .formatted(schema.name(), foreignOwners, user),
                    "Let that owner migrate (worker.schema.user, worker.schema.password).");
        }
    }

    private void run(Work work) {
        try (Connection connection = dataSource.getConnection()) {
            boolean autoCommit = connection.getAutoCommit();
            connection.setAutoCommit(true);
            try {
                work.on(connection);
            } finally {
                restoreAutoCommit(connection, autoCommit);
            }
        } catch (SQLException e) {
            throw translate(e);
        } catch (FlywayException e) {
            throw translate(e);
        }
    }

    private static void restoreAutoCommit(Connection connection, boolean autoCommit) throws SQLException {
        if (!connection.isClosed()) {
            connection.setAutoCommit(autoCommit);
        }
    }

    private SchemaException translate(Exception failure) {
        SQLException sql = sqlException(failure);
        String state = sql == null || sql.getSQLState() == null ? "" : sql.getSQLState();
        String said = "The database said: " + (sql == null ? failure : sql).getMessage();
        if (state.startsWith("28")) {
            return new SchemaException(
                    "PostgreSQL refused the login. " + said,
                    "Check spring.datasource.username and spring.datasource.password, or worker.schema.user and"
                            + " worker.schema.password where they are set.",
                    failure);
        }
        if (state.equals("25006")) {
            return new SchemaException(
                    "The server is read-only, as a standby is. " + said,
                    "Add targetServerType=primary to spring.datasource.url (or worker.schema.url), with the addresses of"
                            + " all servers in it, or let it name the primary.",
                    failure);
        }
        if (state.equals("3D000")) {
            return new SchemaException(
                    "The database does not exist. " + said, "Create it, or correct spring.datasource.url.", failure);
        }
        if (state.equals("42501")) {
            return new SchemaException(
                    "A privilege is missing in schema \"" + schema.name() + "\". " + said,
                    "Grant it, or let a user that owns the schema migrate (worker.schema.user,"
                            + " worker.schema.password).",
                    failure);
        }
        if (said.contains("No suitable driver")) {
            // The driver manager quotes the URL, perhaps with a password, so that the failure goes nowhere.
            return new SchemaException(
                    "There is no JDBC driver for the URL of the database.",
                    "Correct spring.datasource.url (or worker.schema.url): it begins with jdbc:postgresql:");
        }
        if (state.startsWith("08")) {
            return new SchemaException(
                    "PostgreSQL cannot be reached. " + said,
                    "Check that the server runs and that spring.datasource.url (or worker.schema.url) names it.",
                    failure);
        }
        return new SchemaException(
                "Schema \"" + schema.name() + "\" could not be checked or migrated. " + said,
                "Correct the cause and start again: a failed migration leaves nothing behind.",
                failure);
    }

    private static @Nullable SQLException sqlException(Throwable failure) {
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof SQLException sql && sql.getSQLState() != null) {
                return sql;
            }
        }
        return null;
    }

    /** A change that may find its locks taken. */
    @FunctionalInterface
    private interface Attempt {
        void run() throws SQLException;
    }

    /** Something done on the one connection of a call. */
    @FunctionalInterface
    private interface Work {
        void on(Connection connection) throws SQLException;
    }

    /**
     * What stands in the schema.
     *
     * @param ours whether our history is there
     * @param newest the largest id of the shared ledger, or null where there is no ledger
     * @param unknownBreaking an id beyond those that are shared that is marked as breaking, or null
     */
    private record Ledger(
            boolean ours,
            @Nullable Integer newest,
            @Nullable Integer unknownBreaking) {

        void check(WorkerSchema schema) {
            if (unknownBreaking != null) {
                throw new SchemaException(
                        "Schema \"%s\" has been migrated by a newer Graphile Worker: its ledger has the breaking id %d, and this version knows none beyond %d."
                                .formatted(schema.name(), unknownBreaking, NEWEST_SHARED_LEDGER),
                        "Use a version of PgWorker that knows this id, or another schema (worker.schema.name).");
            }
            if (!ours && newest != null && newest < OLDEST_ADOPTED_LEDGER) {
                throw new SchemaException(
                        "Schema \"%s\" belongs to an old Graphile Worker: its ledger ends with id %d, and PgWorker adopts installations from id %d on."
                                .formatted(schema.name(), newest, OLDEST_ADOPTED_LEDGER),
                        "Upgrade it first, for instance with: npx graphile-worker@0.16.6 --schema-only. Or use another"
                                + " schema (worker.schema.name).");
            }
            if (newest != null && newest > NEWEST_KNOWN_LEDGER) {
                log.warn(
                        "Schema {} has been migrated by a newer Graphile Worker, in a way that this version tolerates"
                                + " (ledger id {}, known up to {})",
                        schema.name(),
                        newest,
                        NEWEST_KNOWN_LEDGER);
            }
        }

        String describeMigration() {
            if (ours) {
                return "up to date";
            }
            return newest == null ? "installed" : "adopted from another Graphile Worker (ledger id " + newest + ")";
        }
    }
}
