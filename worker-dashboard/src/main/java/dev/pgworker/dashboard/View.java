package dev.pgworker.dashboard;

import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

import org.jspecify.annotations.Nullable;

/** An object as the pages get it: names and values in the order in which they were put, nulls included. */
final class View {

    private final Map<String, @Nullable Object> values = new LinkedHashMap<>();

    /** Times are written in UTC, durations in milliseconds, constants in lower case. */
    View put(String name, @Nullable Object value) {
        if (value instanceof Instant instant) {
            values.put(name, instant.toString());
        } else if (value instanceof Duration duration) {
            values.put(name, millis(duration));
        } else if (value instanceof Enum<?> constant) {
            values.put(name, constant.name().toLowerCase(Locale.ROOT).replace('_', '-'));
        } else if (value instanceof View view) {
            values.put(name, view.values);
        } else {
            values.put(name, value);
        }
        return this;
    }

    /** Fractions of a millisecond are kept: many handlers take less than one. */
    private static Object millis(Duration duration) {
        long whole = saturated(duration);
        long micros = duration.toNanosPart() / 1_000 % 1_000;
        return micros == 0 || whole > 10_000 ? (Object) whole : (Object) (whole + micros / 1_000.0);
    }

    private static long saturated(Duration duration) {
        try {
            return duration.toMillis();
        } catch (ArithmeticException e) {
            return duration.isNegative() ? Long.MIN_VALUE : Long.MAX_VALUE;
        }
    }

    Map<String, @Nullable Object> map() {
        return values;
    }
}
