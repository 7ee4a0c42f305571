package dev.pgworker.store;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.job.Job;

/** Reads the column types that jobs have. */
final class JobRows {

    private static final JsonMapper json = new JsonMapper();

    private JobRows() {}

    /** Reads what {@code add_job} returns: id, payload, priority and so on, without the names of task and queue. */
    static Job addedJob(ResultSet row, String task, @Nullable String queue) throws SQLException {
        return new Job(
                row.getLong(1),
                task,
                row.getString(2),
                queue,
                row.getInt(3),
                instant(row, 4),
                row.getInt(5),
                row.getInt(6),
                row.getString(7),
                instant(row, 8),
                instant(row, 9),
                row.getString(10),
                nullableInstant(row, 11),
                row.getString(12),
                row.getInt(13),
                flags(row, 14));
    }

    static Instant instant(ResultSet row, int column) throws SQLException {
        return row.getObject(column, OffsetDateTime.class).toInstant();
    }

    static @Nullable Instant nullableInstant(ResultSet row, int column) throws SQLException {
        OffsetDateTime value = row.getObject(column, OffsetDateTime.class);
        return value == null ? null : value.toInstant();
    }

    /** Flags are stored as {@code {"flag": true}}; the peers look at the keys. */
    static Set<String> flags(ResultSet row, int column) throws SQLException {
        String text = row.getString(column);
        if (text == null) {
            return Set.of();
        }
        Set<String> flags = new LinkedHashSet<>();
        for (Map.Entry<String, ?> property : json.readTree(text).properties()) {
            flags.add(property.getKey());
        }
        return flags;
    }
}
