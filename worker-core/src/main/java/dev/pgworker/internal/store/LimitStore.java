package dev.pgworker.internal.store;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import javax.sql.DataSource;

import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.StatementCall;
import dev.pgworker.schema.WorkerSchema;

/**
 * The limits of the database, as workers see them. Each method takes a connection of its own and commits before it returns. Plain
 * JDBC, for the reason that the package gives. Thread-safe.
 */
public final class LimitStore {

    /** How long the server may take for one statement. */
    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(30);

    private final DataSource dataSource;
    private final WorkerSchema schema;

    /** Creates a store for one worker. */
    public LimitStore(DataSource dataSource, WorkerSchema schema) {
        this.dataSource = dataSource;
        this.schema = schema;
    }

    /**
     * A limit.
     *
     * @param declared whether an application declares it
     */
    public record Known(Set<String> tasks, String state, boolean declared) {}

    private static final String LIMITS = """
            select l.name, l.task_identifiers, l.state, l.declared from {schema}.pgworker_limits l order by l.name
            """;

    /** Reads the limits, by name. */
    public Map<String, Known> read() throws SQLException {
        return call(LIMITS, (connection, statement) -> {
            Map<String, Known> read = new LinkedHashMap<>();
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    Set<String> tasks =
                            Set.copyOf(List.of((String[]) row.getArray(2).getArray()));
                    read.put(row.getString(1), new Known(tasks, row.getString(3), row.getBoolean(4)));
                }
            }
            return read;
        });
    }

    /** What is left to do for limits that have been created, changed or deleted. */
    public enum Left {

        /** Something, at once. */
        MORE,

        /** Others are in the way for the moment. */
        BUSY,

        /** Something, when others have ended their transactions. */
        LATER,

        /** Nothing. */
        DONE
    }

    private static final String APPLY = "select {schema}.pgworker_apply_limits()";

    /** Makes limits hold for some of the jobs that are there. */
    public Left apply() throws SQLException {
        return call(APPLY, (connection, statement) -> {
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return Left.valueOf(row.getString(1).toUpperCase(Locale.ROOT));
            }
        });
    }

    private <T> T call(String sql, StatementCall<T> call) throws SQLException {
        return Connections.call(dataSource, schema.in(sql), ANSWER_LIMIT, call);
    }
}
