package dev.pgworker.internal.store;

import java.sql.SQLException;
import java.time.Duration;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.AnswerLimit;
import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.StatementCall;
import dev.pgworker.schema.WorkerSchema;

/**
 * Sends the statements of one worker about jobs, each on a connection of its own from the pool and committed at once.
 *
 * <p>They are plain JDBC: a claim and a completion stand between every two jobs, and what wraps them would cost as much as they
 * do.
 */
record JobSql(DataSource dataSource, WorkerSchema schema, String workerId, AnswerLimit answerLimit) {

    /** Runs a statement that usually takes moments. */
    <T extends @Nullable Object> T call(String sql, StatementCall<T> call) throws SQLException {
        return answerLimit.call(dataSource, in(sql), call);
    }

    /**
     * Runs a statement.
     *
     * @param limit how long the database may take
     */
    <T extends @Nullable Object> T call(String sql, Duration limit, StatementCall<T> call) throws SQLException {
        return Connections.call(dataSource, in(sql), limit, call);
    }

    /** Returns a statement with the name of the schema. */
    String in(String sql) {
        return schema.in(sql);
    }
}
