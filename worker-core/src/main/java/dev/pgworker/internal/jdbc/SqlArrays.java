package dev.pgworker.internal.jdbc;

import java.sql.Array;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;

/**
 * Arrays in the binary form, which PostgreSQL reads fastest and in which null is null whatever {@code array_nulls} is.
 * The driver sends arrays of these element types so, and arrays of objects as text.
 */
public final class SqlArrays {

    private SqlArrays() {}

    /** Returns null where there is no text at all. */
    public static @Nullable Array texts(Connection connection, Collection<String> texts) throws SQLException {
        return texts.isEmpty() ? null : connection.createArrayOf("text", texts.toArray());
    }

    /** Returns an array of ids. */
    public static Array ids(Connection connection, Stream<Long> ids) throws SQLException {
        return connection.createArrayOf("int8", ids.toArray(Long[]::new));
    }

    /** Returns an array of texts, which the statement casts to times; null where there is no time at all. */
    public static <T> @Nullable Array times(
            Connection connection, List<T> elements, Function<T, @Nullable Instant> time) throws SQLException {
        @Nullable String[] texts = new @Nullable String[elements.size()];
        @Nullable Instant last = null;
        @Nullable String text = null;
        boolean any = false;
        for (int i = 0; i < texts.length; i++) {
            Instant instant = time.apply(elements.get(i));
            if (instant != null && !instant.equals(last)) {
                text = Timestamps.text(instant);
                last = instant;
                any = true;
            }
            texts[i] = instant == null ? null : text;
        }
        return any ? connection.createArrayOf("text", texts) : null;
    }

    /**
     * Returns an array of what each element has.
     *
     * @param type text, int4, int8, float8 or bool
     */
    public static <T> Array array(
            Connection connection, String type, List<T> elements, Function<T, @Nullable Object> value)
            throws SQLException {
        int length = elements.size();
        @Nullable Object[] values = switch (type) {
            case "text" -> new @Nullable String[length];
            case "int4" -> new @Nullable Integer[length];
            case "int8" -> new @Nullable Long[length];
            case "float8" -> new @Nullable Double[length];
            case "bool" -> new @Nullable Boolean[length];
            default -> throw new IllegalArgumentException("type: " + type);
        };
        for (int i = 0; i < length; i++) {
            values[i] = value.apply(elements.get(i));
        }
        return connection.createArrayOf(type, values);
    }
}
