package dev.pgworker.internal.store;

import java.sql.Array;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.limit.Limit;
import dev.pgworker.limit.LimitStatus;
import dev.pgworker.limit.LimitStatus.Phase;

/** How the rows of limits are read. */
public final class LimitRow {

    /** The columns of row {@code l}. */
    public static final String COLUMNS = """
            l.name, l.task_identifiers, l.field, l.max_running, l.max_starts,
            (extract(epoch from l.period) operator(pg_catalog.*) 1000000)::bigint, l.burst, l.state, l.declared, l.created_at, l.updated_at
            """;

    private LimitRow() {}

    /** Reads a row of {@link #COLUMNS}. What somebody has written into it by SQL may be anything that the table lets in. */
    public static LimitStatus read(ResultSet row) throws SQLException {
        return new LimitStatus(
                row.getString(1),
                limit(row),
                phase(row.getString(8)),
                row.getBoolean(9),
                Timestamps.instant(row, 10),
                Timestamps.instant(row, 11));
    }

    private static Phase phase(String state) {
        return switch (state) {
            case "active" -> Phase.ACTIVE;
            case "removing" -> Phase.REMOVING;
            default -> Phase.APPLYING;
        };
    }

    private static @Nullable Limit limit(ResultSet row) throws SQLException {
        String name = row.getString(1);
        Integer maxRunning = row.getObject(4, Integer.class);
        int maxStarts = row.getInt(5);
        long micros = row.getLong(6);
        int burst = row.getInt(7);
        try {
            List<String> tasks = texts(row, 2);
            List<String> field = texts(row, 3);
            if (maxRunning != null) {
                return Limit.concurrency(name, maxRunning, tasks).per(field);
            }
            Duration period = Duration.ofSeconds(micros / 1_000_000, micros % 1_000_000 * 1_000);
            return Limit.rate(name, maxStarts, period, tasks).per(field).withBurst(burst);
        } catch (RuntimeException e) {
            return null;
        }
    }

    private static List<String> texts(ResultSet row, int column) throws SQLException {
        Array array = row.getArray(column);
        return array == null ? List.of() : List.of((String[]) array.getArray());
    }
}
