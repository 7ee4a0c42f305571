package dev.pgworker.internal.store;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import javax.sql.DataSource;

import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.schema.WorkerSchema;

/**
 * Has jobs continue for which something has come. Plain JDBC, for the reason that the package gives.
 *
 * @param schema where they are
 */
public record ContinueStore(DataSource dataSource, WorkerSchema schema) {

    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

    /**
     * What is left.
     *
     * @param more whether there may be more to be done at once
     * @param held whether another session holds what could continue, so that it is worth trying again soon
     */
    public record Left(boolean more, boolean held) {}

    private static final String CONTINUE = """
            select c.more, c.held from {schema}.pgworker_continue() c
            """;

    /** Has jobs continue, at most some hundreds. Waits for no locked row. */
    public Left goOn() throws SQLException {
        return Connections.call(dataSource, schema.in(CONTINUE), ANSWER_LIMIT, (connection, statement) -> {
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return new Left(row.getBoolean(1), row.getBoolean(2));
            }
        });
    }

    /**
     * How far the records have been tended.
     *
     * @param last the last job; {@link #FIRST} if the next pass begins anew
     * @param more whether there is so much to be deleted that it is worth continuing at once
     */
    public record Tended(long last, boolean more) {}

    /** Before all jobs. */
    public static final long FIRST = Long.MIN_VALUE;

    private static final String TEND = """
            select t.after, t.more from {schema}.pgworker_tend_continuations(?) t
            """;

    /** Deletes what is no longer needed, of some jobs after the given one. */
    public Tended tend(long after) throws SQLException {
        return Connections.call(dataSource, schema.in(TEND), ANSWER_LIMIT, (connection, statement) -> {
            statement.setLong(1, after);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                long last = row.getLong(1);
                return new Tended(row.wasNull() ? FIRST : last, row.getBoolean(2));
            }
        });
    }
}
