package dev.pgworker.internal.jdbc;

import java.util.Arrays;
import java.util.Collection;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;

/** Values of composite types, and arrays of them, as text that PostgreSQL reads: a statement casts it to the type. */
public final class SqlRows {

    private SqlRows() {}

    /** Returns a row of these values, each by its {@code toString}; null stays null. */
    public static String row(@Nullable Object... values) {
        return Arrays.stream(values).map(SqlRows::quoted).collect(Collectors.joining(",", "(", ")"));
    }

    /** Returns an array of these values, which are rows, numbers or texts. */
    public static String array(Stream<?> values) {
        return values.map(value -> value == null ? "null" : quoted(value)).collect(Collectors.joining(",", "{", "}"));
    }

    /** As {@link #array(Stream)}; null stays null. */
    public static @Nullable String array(@Nullable Collection<?> values) {
        return values == null ? null : array(values.stream());
    }

    private static String quoted(@Nullable Object value) {
        if (value == null) {
            return "";
        } else if (value instanceof Number || value instanceof Boolean) {
            return value.toString();
        }
        String text = value.toString();
        StringBuilder quoted = new StringBuilder(text.length() + 8).append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                quoted.append('\\');
            }
            quoted.append(c);
        }
        return quoted.append('"').toString();
    }
}
