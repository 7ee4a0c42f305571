package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

import org.jspecify.annotations.Nullable;

/** The arguments by which a statement passes runs to the history. */
final class RunRecords {

    /** In the order of the statement. */
    static final String ARGUMENTS = "micros => ?, results => ?, traces => ?";

    private RunRecords() {}

    /**
     * Sets them.
     *
     * @param at the place of the first one
     * @param ids of the jobs, in the order in which the statement has them
     */
    static void set(
            Connection connection, PreparedStatement statement, int at, List<Long> ids, Map<Long, RunRecord> runs)
            throws SQLException {
        set(connection, statement, at, "int8", ids, runs, RunRecord::micros);
        set(connection, statement, at + 1, "text", ids, runs, RunRecord::result);
        set(connection, statement, at + 2, "text", ids, runs, RunRecord::traceId);
    }

    /** Most runs have no result, and then it need not be passed for each. */
    private static void set(
            Connection connection,
            PreparedStatement statement,
            int at,
            String type,
            List<Long> ids,
            Map<Long, RunRecord> runs,
            Function<RunRecord, @Nullable Object> part)
            throws SQLException {
        @Nullable Object[] values = type.equals("int8") ? new @Nullable Long[ids.size()] : new @Nullable String[ids.size()];
        boolean any = false;
        for (int i = 0; i < values.length; i++) {
            RunRecord run = runs.get(ids.get(i));
            values[i] = run == null ? null : part.apply(run);
            any |= values[i] != null;
        }
        statement.setArray(at, any ? connection.createArrayOf(type, values) : null);
    }
}
