package dev.pgworker.internal.store;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import javax.sql.DataSource;

import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.schema.WorkerSchema;

/** Who waits for which tasks, and who serves which. Plain JDBC, for the reason that the package gives. */
public final class UnservedStore {

    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

    /** How many of the first due jobs are looked at. */
    private static final int DEPTH = 1_000;

    private final DataSource dataSource;
    private final WorkerSchema schema;

    /** Creates a store for one schema. */
    public UnservedStore(DataSource dataSource, WorkerSchema schema) {
        this.dataSource = dataSource;
        this.schema = schema;
    }

    /**
     * Jobs of one task among the first that are due.
     *
     * @param jobs how many
     * @param waited for how long the first of them has been due
     */
    public record Waiting(String task, long jobs, Duration waited) {}

    /**
     * What a look at the first due jobs has found.
     *
     * @param tasks those that were not excepted
     * @param complete whether there were no more due jobs
     */
    public record Look(List<Waiting> tasks, boolean complete) {}

    private static final String WAITING = """
            select identifier, jobs, case when pg_catalog.isfinite(since) then extract(epoch from pg_catalog.now() - since) else 1e9 end
              ::double precision, more
            from {schema}.pgworker_waiting_tasks(?::pg_catalog.text[], ?::double precision * interval '1 ms', ?)
            order by since, identifier
            """;

    /**
     * Looks at the first due jobs.
     *
     * @param except the tasks that need not be reported
     * @param longerThan how long jobs have to have been due
     */
    public Look waiting(Set<String> except, Duration longerThan) throws SQLException {
        return Connections.call(dataSource, schema.in(WAITING), ANSWER_LIMIT, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("text", except.toArray()));
            statement.setDouble(2, Timestamps.millis(longerThan));
            statement.setInt(3, DEPTH);
            List<Waiting> found = new ArrayList<>();
            boolean complete = true;
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    complete = !row.getBoolean(4);
                    String task = row.getString(1);
                    if (task != null) {
                        Duration waited = Duration.ofMillis((long) (row.getDouble(3) * 1_000));
                        found.add(new Waiting(task, row.getLong(2), waited));
                    }
                }
            }
            return new Look(found, complete);
        });
    }

    /**
     * What the registered workers that are alive serve.
     *
     * @param tasks all that they report
     * @param silent whether one of them reports none: those of Rust
     */
    public record Served(Set<String> tasks, boolean silent) {}

    private static final String SERVED = """
            select distinct t.name
            from {schema}._private_workers w
            left join lateral pg_catalog.jsonb_array_elements_text(
              case when pg_catalog.jsonb_typeof(w.metadata -> 'tasks') = 'array' then w.metadata -> 'tasks' end) t(name) on true
            where w.last_heartbeat_at > pg_catalog.now() - greatest(interval '5 minutes', interval '1 ms' * case
              when pg_catalog.jsonb_typeof(w.metadata -> 'sweepThresholdMillis') = 'number'
              then (w.metadata ->> 'sweepThresholdMillis')::double precision else 0 end)
              and (t.name is not null or w.metadata -> 'tasks' is null)
            """;

    /** Looks at the register of workers. */
    public Served served() throws SQLException {
        return Connections.call(dataSource, schema.in(SERVED), ANSWER_LIMIT, (connection, statement) -> {
            Set<String> tasks = new HashSet<>();
            boolean silent = false;
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    String name = row.getString(1);
                    if (name == null) {
                        silent = true;
                    } else {
                        tasks.add(name);
                    }
                }
            }
            return new Served(tasks, silent);
        });
    }
}
