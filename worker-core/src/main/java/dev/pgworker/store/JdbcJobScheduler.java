package dev.pgworker.store;

import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.ZoneOffset;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.jdbc.support.SQLExceptionTranslator;
import org.springframework.jdbc.support.SQLStateSQLExceptionTranslator;

import dev.pgworker.job.Arguments;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.PayloadCodec;

/** Adds jobs through {@code add_job} on the connection of the caller's transaction. */
public final class JdbcJobScheduler implements JobScheduler {

    private final DataSource dataSource;
    private final WorkerSchema schema;
    private final PayloadCodec codec;
    private final SQLExceptionTranslator translator = new SQLStateSQLExceptionTranslator();

    /** Creates a scheduler for the jobs of one schema. */
    public JdbcJobScheduler(DataSource dataSource, WorkerSchema schema, PayloadCodec codec) {
        this.dataSource = dataSource;
        this.schema = schema;
        this.codec = codec;
    }

    @Override
    public Job addJob(String identifier, @Nullable Object payload, JobSpec spec) {
        Arguments.requireIdentifier(identifier);
        return add(identifier, codec.encode("payload", payload), spec);
    }

    @Override
    public <P> Job addJob(Task<P> task, P payload, JobSpec spec) {
        Arguments.requireNonNull("task", task);
        return add(task.identifier(), codec.encode("payload", payload, task.payloadType()), spec);
    }

    private Job add(String identifier, String json, JobSpec spec) {
        Arguments.requireNonNull("spec", spec);
        Connection connection = DataSourceUtils.getConnection(dataSource);
        try {
            Job job = addJob(connection, identifier, json, spec);
            if (!connection.getAutoCommit() && !DataSourceUtils.isConnectionTransactional(connection, dataSource)) {
                connection.commit();
            }
            return job;
        } catch (SQLException e) {
            throw translate(identifier, e);
        } finally {
            DataSourceUtils.releaseConnection(connection, dataSource);
        }
    }

    private static final String ADD_JOB = """
            select id, payload, priority, run_at, attempts, max_attempts, last_error, created_at, updated_at, key,
                   locked_at, locked_by, revision, flags
            from {schema}.add_job(
              identifier => ?, payload => ?::json, queue_name => ?, run_at => ?, max_attempts => ?,
              job_key => ?, priority => ?, flags => ?, job_key_mode => ?)
            """;

    private Job addJob(Connection connection, String identifier, String payload, JobSpec spec) throws SQLException {
        JobKeyMode mode = spec.jobKeyMode() == null ? JobKeyMode.REPLACE : spec.jobKeyMode();
        try (PreparedStatement statement = connection.prepareStatement(schema.in(ADD_JOB))) {
            statement.setString(1, identifier);
            statement.setString(2, payload);
            statement.setString(3, spec.queueName());
            statement.setObject(
                    4,
                    spec.runAt() == null ? null : spec.runAt().atOffset(ZoneOffset.UTC),
                    Types.TIMESTAMP_WITH_TIMEZONE);
            statement.setObject(5, spec.maxAttempts(), Types.INTEGER);
            statement.setString(6, spec.jobKey());
            statement.setObject(7, spec.priority(), Types.INTEGER);
            statement.setArray(8, flags(connection, spec));
            statement.setString(9, mode.sqlName());
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                long id = row.getLong(1);
                // Only an untouched job may have another task and queue than the ones just given.
                Names names = mode == JobKeyMode.UNSAFE_DEDUPE
                        ? names(connection, id)
                        : new Names(identifier, spec.queueName());
                return new Job(
                        id,
                        names.task,
                        row.getString(2),
                        names.queue,
                        row.getInt(3),
                        JobRows.instant(row, 4),
                        row.getInt(5),
                        row.getInt(6),
                        row.getString(7),
                        JobRows.instant(row, 8),
                        JobRows.instant(row, 9),
                        row.getString(10),
                        JobRows.nullableInstant(row, 11),
                        row.getString(12),
                        row.getInt(13),
                        JobRows.flags(row, 14));
            }
        }
    }

    private static final String NAMES = """
            select task_identifier, queue_name from {schema}.jobs where id = ?
            """;

    private Names names(Connection connection, long id) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(NAMES))) {
            statement.setLong(1, id);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return new Names(row.getString(1), row.getString(2));
            }
        }
    }

    private static @Nullable Array flags(Connection connection, JobSpec spec) throws SQLException {
        return spec.flags().isEmpty()
                ? null
                : connection.createArrayOf("text", spec.flags().toArray());
    }

    private DataAccessException translate(String identifier, SQLException e) {
        String task = "add a job of task \"" + identifier + "\"";
        DataAccessException translated = translator.translate(task, null, e);
        if (translated != null) {
            return translated;
        }
        return new org.springframework.jdbc.UncategorizedSQLException(task, null, e);
    }

    private record Names(String task, @Nullable String queue) {}
}
