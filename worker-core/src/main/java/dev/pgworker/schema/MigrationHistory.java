package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
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
    private final String location;
    private final MigrationFiles files;

    /**
     * Creates the history of one schema.
     *
     * @param location where on the classpath the migrations are
     */
    MigrationHistory(WorkerSchema schema, String location) {
        this.schema = schema;
        this.location = location;
        this.files = new MigrationFiles(schema, location);
    }

    /** Applies what has not been applied yet, and functions whose text has changed, in the transaction of a {@link PinnedConnection}. */
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
                .locations("classpath:" + location)
                .failOnMissingLocations(true)
                .placeholders(Map.of("schema", schema.name()))
                // A schema installed by another Graphile Worker has tables but no history of PgWorker.
                .baselineOnMigrate(true)
                .baselineVersion("0")
                .group(true)
                // During a rolling upgrade an older application meets the schema of a newer one. Files of functions may
                // go.
                .ignoreMigrationPatterns("*:future", "repeatable:missing")
                .cleanDisabled(true)
                .callbacks(new FunctionAttributes.Keeper(schema))
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

    /**
     * Returns whether a migration of PgWorker has been applied. One that failed, the first, leaves a history without
     * any.
     */
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

    /**
     * How far a schema has our migrations.
     *
     * @param failed whether one of them has failed
     * @param newer whether a newer version has migrated the schema; its functions stay, also where ours differ
     * @param missing scripts that have not been applied
     * @param outdated scripts of functions that have been applied with another text
     * @param applied paths on the classpath of those that have been applied as they are, in that order
     */
    record State(boolean failed, boolean newer, List<String> missing, List<String> outdated, List<String> applied) {

        boolean isUpToDate() {
            return !failed && (newer || (missing.isEmpty() && outdated.isEmpty()));
        }
    }

    /** Compares the migrations with what the schema has. */
    State read(Connection connection) throws SQLException {
        List<String> unchanged =
                Catalog.hasTable(connection, schema, TABLE) ? files.unchanged(connection, TABLE) : null;
        return unchanged == null
                ? compare(connection)
                : new State(
                        false,
                        false,
                        List.of(),
                        List.of(),
                        unchanged.stream().map(this::pathOf).toList());
    }

    private State compare(Connection connection) throws SQLException {
        MigrationInfoService info = info(connection);
        Set<String> outdated = new LinkedHashSet<>();
        List<String> applied = new ArrayList<>();
        boolean failed = false;
        boolean newer = false;
        for (MigrationInfo migration : info.all()) {
            MigrationState state = migration.getState();
            failed |= state == MigrationState.FAILED;
            newer |= state == MigrationState.FUTURE_SUCCESS;
            if (state == MigrationState.OUTDATED) {
                outdated.add(migration.getScript());
            } else if (state == MigrationState.SUCCESS && !migration.getType().isSynthetic()) {
                applied.add(pathOf(migration.getScript()));
            }
        }
        List<String> missing = Arrays.stream(info.pending())
                .map(MigrationInfo::getScript)
                .filter(script -> !outdated.contains(script))
                .toList();
        return new State(failed, newer, missing, List.copyOf(outdated), applied);
    }

    /**
     * Reads the history independently of the session's search path, in the transaction under way or in one of its own.
     */
    private MigrationInfoService info(Connection connection) throws SQLException {
        if (!connection.getAutoCommit()) {
            return flyway(connection).info();
        }
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.execute("set local search_path = pg_catalog, pg_temp");
            return flyway(PinnedConnection.of(connection)).info();
        } finally {
            connection.rollback();
            connection.setAutoCommit(true);
        }
    }

    private String pathOf(String script) {
        return location + "/" + script;
    }
}
