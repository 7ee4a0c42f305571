package dev.pgworker.internal.store;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import javax.sql.DataSource;

import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.schema.WorkerSchema;

/** The ledger of migrations that all Graphile Workers of a schema share.Plain JDBC, for the reason that the package gives. */
public final class MigrationStore {

    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

    private final DataSource dataSource;
    private final WorkerSchema schema;

    /** Creates a store for one schema. */
    public MigrationStore(DataSource dataSource, WorkerSchema schema) {
        this.dataSource = dataSource;
        this.schema = schema;
    }

    /**
     * What others have done to the schema.
     *
     * @param newest the largest id of the ledger; 0 if it has none
     * @param breaking whether this version cannot work with it
     */
    public record Ledger(int newest, boolean breaking) {}

    // 20 is the last id that this version installs.
    private static final String READ = """
            select pg_catalog.max(m.id), pg_catalog.count(*) filter (where m.breaking and m.id > 20) > 0::bigint
            from {schema}.migrations m
            """;

    /** Reads the ledger. */
    public Ledger read() throws SQLException {
        return Connections.call(dataSource, schema.in(READ), ANSWER_LIMIT, (connection, statement) -> {
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return new Ledger(row.getInt(1), row.getBoolean(2));
            }
        });
    }
}
