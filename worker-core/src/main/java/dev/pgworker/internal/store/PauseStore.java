package dev.pgworker.internal.store;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;

import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.job.Pause;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.schema.WorkerSchema;

/** What is paused, as a running worker reads it. Thread-safe. */
public final class PauseStore {

    /** What {@link #pause} reads, of a table called p. */
    public static final String COLUMNS = "p.kind, p.name, p.paused_at, p.paused_by, p.reason";

    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

    private final DataSource dataSource;
    private final WorkerSchema schema;

    /** Creates a store for one schema. */
    public PauseStore(DataSource dataSource, WorkerSchema schema) {
        this.dataSource = dataSource;
        this.schema = schema;
    }

    /** Returns the word by which the database knows a kind. */
    public static String word(PauseTarget.Kind kind) {
        return switch (kind) {
            case TASK -> "task";
            case QUEUE -> "queue";
            case EVERYTHING -> "all";
        };
    }

    /**
     * Reads a pause.
     *
     * @param first the number of the first of its {@link #COLUMNS}
     */
    public static Pause pause(ResultSet row, int first) throws SQLException {
        String name = row.getString(first + 1);
        PauseTarget target = switch (row.getString(first)) {
            case "task" -> PauseTarget.task(name);
            case "queue" -> PauseTarget.queue(name);
            default -> PauseTarget.everything();
        };
        return new Pause(
                target, Timestamps.instant(row, first + 2), row.getString(first + 3), row.getString(first + 4));
    }

    /**
     * What there is.
     *
     * @param pauses what is paused
     * @param anyQueue whether a queue is paused, or was and is not settled, so that others may undo that
     * @param loose whether {@link #keep} has something to do, or may have
     */
    public record State(List<Pause> pauses, boolean anyQueue, boolean loose) {}

    // Queues are looked for one by one: a join would read all of them where the planner thinks that much is paused.
    private static final String READ = "select " + COLUMNS + """
            , p.resumed_at is not null,
              p.kind operator(pg_catalog.=) 'queue' and (p.resumed_at is not null or (
                select q.locked_by from {schema}._private_job_queues q
                where q.queue_name operator(pg_catalog.=) p.name) is distinct from 'pgworker-paused')
            from {schema}.pgworker_pauses p
            """;

    /** Reads what is paused. */
    public State read() throws SQLException {
        return Connections.call(dataSource, schema.in(READ), ANSWER_LIMIT, (connection, statement) -> {
            List<Pause> pauses = new ArrayList<>();
            boolean anyQueue = false;
            boolean loose = false;
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    if (!rows.getBoolean(6)) {
                        pauses.add(pause(rows, 1));
                    }
                    anyQueue |= rows.getString(1).equals("queue");
                    loose |= rows.getBoolean(7);
                }
            }
            return new State(List.copyOf(pauses), anyQueue, loose);
        });
    }

    private static final String KEEP = "select {schema}.pgworker_keep_pauses()";

    /** Locks paused queues that were freed, and settles what has been resumed. */
    public void keep() throws SQLException {
        boolean unused = Connections.call(dataSource, schema.in(KEEP), ANSWER_LIMIT, (connection, statement) -> {
            try (ResultSet row = statement.executeQuery()) {
                return row.next();
            }
        });
    }
}
