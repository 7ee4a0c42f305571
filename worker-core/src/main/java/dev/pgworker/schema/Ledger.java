package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Set;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;

/**
 * The content of the ledger of migrations that all Graphile Workers of a schema share.
 *
 * @param ours whether our history is there
 * @param newest the largest id of the shared ledger, or null where there is no ledger
 * @param unknownBreaking an id beyond those that are shared that is marked as breaking, or null
 */
record Ledger(
        boolean ours, @Nullable Integer newest, @Nullable Integer unknownBreaking) {

    private static final Logger log = WorkerLog.of(Ledger.class);

    /** Ids of the shared ledger, {@code migrations}: Node.js has 18 to 20, and Rust, whose ids above 20 are its own, up to 22. */
    private static final int OLDEST_ADOPTED = 18;

    private static final int NEWEST_SHARED = 20;
    private static final int NEWEST_KNOWN = 22;

    /** Reads the ledger. Other Graphile Workers add the column {@code breaking} where an older one, or an administrator, made it without. */
    static Ledger read(Connection connection, WorkerSchema schema, MigrationHistory history) throws SQLException {
        Set<String> columns = Catalog.columns(connection, schema, "migrations");
        if (columns.isEmpty()) {
            return new Ledger(false, null, null);
        }
        if (!columns.contains("id")) {
            throw new SchemaException(
                    "Table \"migrations\" of schema \"" + schema.name()
                            + "\" is not the ledger of a Graphile Worker: it has no column id.",
                    "Use another schema (pgworker.schema.name).");
        }
        String sql = schema.in("""
                select pg_catalog.max(id)::int, (pg_catalog.max(id) filter (where %s and id > %s))::int from {schema}.migrations
                """.formatted(columns.contains("breaking") ? "breaking" : "false", NEWEST_SHARED));
        boolean ours = history.hasAny(connection);
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(sql)) {
            row.next();
            return new Ledger(ours, row.getObject(1, Integer.class), row.getObject(2, Integer.class));
        }
    }

    /** Refuses what this version cannot work with, and warns of what it does not know. */
    void check(WorkerSchema schema) {
        if (unknownBreaking != null) {
            throw new SchemaException(
                    "Schema \"%s\" has been migrated by a newer Graphile Worker: its ledger has the breaking id %s, and this version knows none beyond %s."
                            .formatted(schema.name(), unknownBreaking, NEWEST_SHARED),
                    "Use a version of PgWorker that knows this id, or another schema (pgworker.schema.name).");
        }
        if (!ours && newest != null && newest < OLDEST_ADOPTED) {
            throw new SchemaException(
                    "Schema \"%s\" belongs to an old Graphile Worker: its ledger ends with id %s, and PgWorker adopts installations from id %s on."
                            .formatted(schema.name(), newest, OLDEST_ADOPTED),
                    "Stop its workers and upgrade it: npx graphile-worker@0.16.6 --schema-only --schema %s --connection postgres://..."
                                    .formatted(schema.name())
                            + " Or use another schema (pgworker.schema.name).");
        }
        if (newest != null && newest > NEWEST_KNOWN) {
            log.warn(
                    "Schema {} has been migrated by a newer Graphile Worker, in a way that this version tolerates"
                            + " (ledger id {}, known up to {})",
                    schema.name(),
                    newest,
                    NEWEST_KNOWN);
        }
    }

    /** Describes what a migration has made of it. */
    String describeMigration() {
        if (ours) {
            return "up to date";
        }
        return newest == null ? "installed" : "adopted from another Graphile Worker (ledger id " + newest + ")";
    }
}
