package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.EnumSet;
import java.util.Set;

import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.schema.WorkerSchema;

/**
 * Reads which of the tables have rows for what workers are to do besides running jobs.
 *
 * @param schema where they are
 */
public record LookoutStore(WorkerSchema schema) {

    /** What workers are notified of. */
    public enum Subject {
        PAUSES("pauses"),
        LIMITS("limits"),
        SCHEDULES("schedules"),
        CANCELLATIONS("cancellations"),
        CONTINUATIONS("continuations");

        private final String column;

        Subject(String column) {
            this.column = column;
        }
    }

    private static final String LOOK_OUT = """
            select l.pauses, l.limits, l.schedules, l.cancellations, l.continuations from {schema}.pgworker_look_out() l
            """;

    /**
     * Returns what there is nothing of. Waits at most half a second for a locked table.
     *
     * @param connection in auto-commit mode and in no transaction
     */
    public Set<Subject> none(Connection connection) throws SQLException {
        return Connections.readingCommitted(connection, () -> {
            // Not prepared: where a pooler gives the server's session to others, it would not be there the next time.
            try (Statement statement = connection.createStatement();
                    ResultSet row = statement.executeQuery(schema.in(LOOK_OUT))) {
                row.next();
                Set<Subject> none = EnumSet.noneOf(Subject.class);
                for (Subject subject : Subject.values()) {
                    if (!row.getBoolean(subject.column)) {
                        none.add(subject);
                    }
                }
                return none;
            }
        });
    }
}
