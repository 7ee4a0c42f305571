package dev.pgworker.schema;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.MigrationInfo;
import org.flywaydb.core.api.MigrationInfoService;
import org.flywaydb.core.api.MigrationState;
import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;

/** Our migrations of a schema and the history inside it of those that have been applied, which are Flyway's. */
final class MigrationHistory {

    private static final String TABLE = "worker_flyway_history";

    private final WorkerSchema schema;
    private final List<String> locations;

    /**
     * Creates the history of one schema.
     *
     * @param locations where on the classpath the migrations are
     */
    MigrationHistory(WorkerSchema schema, List<String> locations) {
        this.schema = schema;
        this.locations = locations;
    }

    /** Applies what has not been applied yet. */
    void migrate(Connection connection) {
        flyway(connection).migrate();
    }

    private Flyway flyway(Connection connection) {
        return Flyway.configure(MigrationHistory.class.getClassLoader())
                .dataSource(new SingleConnectionDataSource(connection, true))
                .schemas(schema.name())
                .defaultSchema(schema.name())
                .createSchemas(true)
                .table(TABLE)
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

    /** Returns the version of the newest migration that has been applied; null for none. */
    @Nullable String version(Connection connection) throws SQLException {
        if (!Catalog.hasTable(connection, schema, TABLE)) {
            return null;
        }
        String sql = schema.in("""
                select version from {schema}.%s where success and version is not null order by installed_rank desc limit 1
                """.formatted(TABLE));
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(sql)) {
            return row.next() ? row.getString(1) : null;
        }
    }

    /** Tells whether a migration of ours has been applied. One that failed, the first, leaves a history without any. */
    boolean hasAny(Connection connection) throws SQLException {
        if (!Catalog.hasTable(connection, schema, TABLE)) {
            return false;
        }
        String sql = schema.in(
                "select 1 from {schema}." + TABLE + " where success and type::pg_catalog.text = 'SQL' limit 1");
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(sql)) {
            return row.next();
        }
    }

    /** Tells whether all of our migrations have been applied. */
    boolean isUpToDate(Connection connection) throws SQLException {
        MigrationInfoService info = info(connection);
        for (var migration : info.all()) {
            if (migration.getState() == MigrationState.FAILED) {
                return false;
            }
        }
        return info.pending().length == 0;
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

    /**
     * Returns the functions that other Graphile Workers know too, which one with a longer ledger replaces when it starts; null for
     * a schema that a newer version has migrated, as only that version has their definitions.
     */
    @Nullable SharedFunctions sharedFunctions(Connection connection) throws SQLException {
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

    private String pathOf(String script) {
        return locations.stream()
                .map(location -> location + "/" + script)
                .filter(path -> MigrationHistory.class.getClassLoader().getResource(path) != null)
                .findFirst()
                .orElseThrow(() -> new IllegalStateException("There is no migration " + script));
    }
}
