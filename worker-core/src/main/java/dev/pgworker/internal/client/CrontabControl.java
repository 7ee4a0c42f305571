package dev.pgworker.internal.client;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.schema.WorkerSchema;

/**
 * The register of recurring jobs as an application looks at it and pauses its items. Failures are Spring's
 * {@code DataAccessException}s.
 */
public final class CrontabControl {

    private final DataSource dataSource;
    private final ClientConnections connections;
    private final WorkerSchema schema;

    /** Creates the control of one schema's register. */
    public CrontabControl(DataSource dataSource, WorkerSchema schema) {
        this.dataSource = dataSource;
        this.connections = new ClientConnections(dataSource);
        this.schema = schema;
    }

    /**
     * What the database knows of an item.
     *
     * @param since when it was first seen; null for an item that is paused and has not been seen
     * @param lastExecution the last minute for which it was executed; null for none
     * @param pausedAt since when it is paused; null if it is not
     */
    public record Entry(
            String identifier,
            @Nullable Instant since,
            @Nullable Instant lastExecution,
            @Nullable Instant pausedAt) {}

    private static final String NOW = """
            select pg_catalog.clock_timestamp()
            """;

    /** Returns the database's time. Joins the caller's transaction. */
    public Instant now() {
        return connections.call("ask for the time", false, connection -> {
            try (PreparedStatement statement = connection.prepareStatement(NOW);
                    ResultSet row = statement.executeQuery()) {
                row.next();
                return Timestamps.instant(row, 1);
            }
        });
    }

    private static final String LIST = """
            select identifier, k.known_since, k.last_execution, p.paused_at
            from {schema}._private_known_crontabs k full join {schema}.pgworker_paused_crontabs p using (identifier)
            order by identifier
            """;

    /** Returns all items by their identifiers. Joins the caller's transaction. */
    public List<Entry> list() {
        return connections.call("list the recurring jobs", false, connection -> {
            try (PreparedStatement statement = connection.prepareStatement(schema.in(LIST));
                    ResultSet rows = statement.executeQuery()) {
                List<Entry> entries = new ArrayList<>();
                while (rows.next()) {
                    entries.add(new Entry(
                            rows.getString(1), instantOrNull(rows, 2), instantOrNull(rows, 3), instantOrNull(rows, 4)));
                }
                return entries;
            }
        });
    }

    private static @Nullable Instant instantOrNull(ResultSet rows, int column) throws SQLException {
        OffsetDateTime time = rows.getObject(column, OffsetDateTime.class);
        return time == null ? null : time.toInstant();
    }

    private static final String LOCK = """
            select from {schema}._private_known_crontabs where identifier = ?::pg_catalog.text for update
            """;

    private static final String PAUSE = """
            insert into {schema}.pgworker_paused_crontabs (identifier) values (?) on conflict (identifier) do nothing
            """;

    /**
     * Pauses an item, after the execution of it that may be under way. Committed on return.
     *
     * @return whether it was not paused before
     */
    public boolean pause(String identifier) {
        return inOwnTransaction("pause recurring job \"" + identifier + "\"", connection -> {
            change(connection, LOCK, identifier);
            return change(connection, PAUSE, identifier);
        });
    }

    private static final String RESUME = """
            delete from {schema}.pgworker_paused_crontabs where identifier = ?::pg_catalog.text
            """;

    private static final String PASS_OVER = """
            update {schema}._private_known_crontabs
            set last_execution = greatest(last_execution, pg_catalog.date_trunc('minute', pg_catalog.clock_timestamp()))
            where identifier = ?::pg_catalog.text
            """;

    /**
     * Ends a pause; all minutes up to the present one count as executed. Committed on return.
     *
     * @return whether it was paused
     */
    public boolean resume(String identifier) {
        return inOwnTransaction("resume recurring job \"" + identifier + "\"", connection -> {
            change(connection, LOCK, identifier);
            boolean resumed = change(connection, RESUME, identifier);
            if (resumed) {
                change(connection, PASS_OVER, identifier);
            }
            return resumed;
        });
    }

    private boolean inOwnTransaction(String task, ClientConnections.Work<Boolean> work) {
        try (Connection connection = dataSource.getConnection()) {
            return Connections.inTransaction(connection, () -> work.on(connection));
        } catch (SQLException e) {
            throw connections.translate(task, e);
        }
    }

    /** Returns whether the statement changed a row. */
    private boolean change(Connection connection, String sql, String identifier) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(sql))) {
            statement.setString(1, identifier);
            return !statement.execute() && statement.getUpdateCount() > 0;
        }
    }
}
