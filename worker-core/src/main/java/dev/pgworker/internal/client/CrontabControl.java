package dev.pgworker.internal.client;

import java.time.Instant;
import java.util.List;
import java.util.function.Function;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.schema.WorkerSchema;

/**
 * The register of recurring jobs as an application looks at it, pauses its items and forgets them, in the caller's transaction. Failures are Spring's
 * {@code DataAccessException}s.
 */
public final class CrontabControl {

    private final ClientConnections connections;
    private final WorkerSchema schema;

    /** Creates the control of one schema's register. */
    public CrontabControl(DataSource dataSource, WorkerSchema schema) {
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

    /** Returns the database's time. */
    public Instant now() {
        return connections.query(
                "ask for the time",
                false,
                client -> client.sql(NOW)
                        .query((row, number) -> Timestamps.instant(row, 1))
                        .single());
    }

    private static final String LIST = """
            select identifier, k.known_since, k.last_execution, p.paused_at
            from {schema}._private_known_crontabs k full join {schema}.pgworker_paused_crontabs p using (identifier)
            order by identifier
            """;

    /** Returns all items by their identifiers. */
    public List<Entry> list() {
        return connections.query(
                "list the recurring jobs",
                false,
                client -> client.sql(schema.in(LIST))
                        .query((row, number) -> new Entry(
                                row.getString(1),
                                Timestamps.nullableInstant(row, 2),
                                Timestamps.nullableInstant(row, 3),
                                Timestamps.nullableInstant(row, 4)))
                        .list());
    }

    private static final String LOCK = """
            select from {schema}._private_known_crontabs where identifier = ?::pg_catalog.text for update
            """;

    private static final String PAUSE = """
            insert into {schema}.pgworker_paused_crontabs (identifier) values (?) on conflict (identifier) do nothing
            """;

    /**
     * Pauses an item, after the execution of it that may be under way.
     *
     * @return whether it was not paused before
     */
    public boolean pause(String identifier) {
        return together("pause recurring job \"" + identifier + "\"", client -> {
            lock(client, identifier);
            return change(client, PAUSE, identifier);
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
     * Ends a pause; all minutes up to the present one count as executed.
     *
     * @return whether it was paused
     */
    public boolean resume(String identifier) {
        return together("resume recurring job \"" + identifier + "\"", client -> {
            lock(client, identifier);
            boolean resumed = change(client, RESUME, identifier);
            if (resumed) {
                change(client, PASS_OVER, identifier);
            }
            return resumed;
        });
    }

    private static final String FORGET = """
            delete from {schema}._private_known_crontabs where identifier = ?::pg_catalog.text
            """;

    /**
     * Removes an item from the register, and its pause.
     *
     * @return whether there was any of both
     */
    public boolean forget(String identifier) {
        return together("forget recurring job \"" + identifier + "\"", client -> {
            lock(client, identifier);
            boolean paused = change(client, RESUME, identifier);
            return change(client, FORGET, identifier) || paused;
        });
    }

    private boolean together(String task, Function<JdbcClient, Boolean> work) {
        return connections.query(task, true, work);
    }

    private void lock(JdbcClient client, String identifier) {
        List<Boolean> unused = client.sql(schema.in(LOCK))
                .param(identifier)
                .query((row, number) -> true)
                .list();
    }

    /** Returns whether the statement changed a row. */
    private boolean change(JdbcClient client, String sql, String identifier) {
        return client.sql(schema.in(sql)).param(identifier).update() > 0;
    }
}
