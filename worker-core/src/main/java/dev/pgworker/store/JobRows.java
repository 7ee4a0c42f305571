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

/** Reads the column types that jobs have. */
final class JobRows {

    private static final JsonMapper json = new JsonMapper();

    private JobRows() {}

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
