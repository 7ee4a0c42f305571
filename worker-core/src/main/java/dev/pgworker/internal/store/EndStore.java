package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.SqlArrays;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.schema.WorkerSchema;

/** Asks for the ends of jobs, and reads them. Thread-safe. */
public final class EndStore {

    /** The flag of jobs whose result is kept, which the running worker reads. */
    public static final String RESULT_FLAG = "pgworker:result";

    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

    private final DataSource dataSource;
    private final WorkerSchema schema;

    /** Creates a store for one schema. */
    public EndStore(DataSource dataSource, WorkerSchema schema) {
        this.dataSource = dataSource;
        this.schema = schema;
    }

    /**
     * How a job has ended.
     *
     * @param task null if nothing is known of the job
     * @param outcome as the table has it, or absent
     * @param result as JSON text; null if there is none
     * @param error the last error of the job, or why there is no result; null if there is none
     */
    public record End(
            long jobId,
            @Nullable String task,
            String outcome,
            @Nullable String result,
            @Nullable String error) {}

    private static final String KEEP = """
            select {schema}.pgworker_keep_ends(array[?], ?::double precision operator(pg_catalog.*) interval '1 ms')
            """;

    /** Asks for the end of a job, in the transaction of the given connection, which adds the job. */
    public void keep(Connection connection, long jobId, Duration keepFor) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(KEEP))) {
            statement.setLong(1, jobId);
            statement.setDouble(2, Timestamps.millis(keepFor));
            statement.executeQuery().close();
        }
    }

    private static final String ENDED = """
            select e.job_id, e.task_identifier, e.outcome, e.result, e.error from {schema}.pgworker_results(?) e
            """;

    /** Returns how those of the jobs have ended that have; not all at once if their results are large. */
    public List<End> ended(Collection<Long> jobIds) throws SQLException {
        return Connections.call(dataSource, schema.in(ENDED), ANSWER_LIMIT, (connection, statement) -> {
            statement.setArray(1, SqlArrays.ids(connection, jobIds.stream()));
            List<End> ended = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    ended.add(new End(
                            rows.getLong(1),
                            rows.getString(2),
                            rows.getString(3),
                            rows.getString(4),
                            rows.getString(5)));
                }
            }
            return ended;
        });
    }
}
