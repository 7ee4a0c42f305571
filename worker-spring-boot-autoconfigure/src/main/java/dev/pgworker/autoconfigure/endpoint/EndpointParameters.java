package dev.pgworker.autoconfigure.endpoint;

import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.Collection;
import java.util.EnumSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Function;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Rescheduling;

/** Reads parameters from text; every refusal is an IllegalArgumentException that names the parameter. */
final class EndpointParameters {

    private EndpointParameters() {}

    static String required(String name, @Nullable String text) {
        if (text == null || text.isBlank()) {
            throw new IllegalArgumentException(name + " is required");
        }
        return text.strip();
    }

    static @Nullable Integer integer(String name, @Nullable String text) {
        return parse(name, text, "an integer", Integer::valueOf);
    }

    /** Refuses a number out of its range; null is allowed. */
    static void requireRange(String name, @Nullable Integer value, int min, int max) {
        if (value != null && (value < min || value > max)) {
            throw new IllegalArgumentException(name + " must be between " + min + " and " + max + ", but is " + value);
        }
    }

    static @Nullable Long id(String name, @Nullable String text) {
        return parse(name, text, "a job id", Long::valueOf);
    }

    private static <T> @Nullable T parse(
            String name, @Nullable String text, String wanted, Function<String, T> parser) {
        if (text == null || text.isBlank()) {
            return null;
        }
        try {
            return parser.apply(text.strip());
        } catch (IllegalArgumentException | DateTimeException | ArithmeticException e) {
            throw new IllegalArgumentException(name + " must be " + wanted + ", but is \"" + text + "\"", e);
        }
    }

    /** Reads an instant, or a duration from the present on; leaves the rescheduling as it is if neither is given. */
    static void runAt(String name, @Nullable String text, Rescheduling.Builder rescheduling) {
        parse(
                name,
                text,
                "an instant such as 2026-01-01T00:00:00Z, or a duration such as PT10M",
                t -> t.toUpperCase(Locale.ROOT).startsWith("P")
                        ? rescheduling.runIn(Duration.parse(t))
                        : rescheduling.runAt(Instant.parse(t)));
    }

    static @Nullable Instant instant(String name, @Nullable String text) {
        return parse(name, text, "an instant such as 2026-01-01T00:00:00Z", Instant::parse);
    }

    static @Nullable Duration duration(String name, @Nullable String text) {
        return parse(name, text, "a duration such as PT1M", Duration::parse);
    }

    /** Reads true or false; false if it is not given. */
    static boolean flag(String name, @Nullable String text) {
        String value = text == null || text.isBlank() ? "false" : text.strip().toLowerCase(Locale.ROOT);
        if (!value.equals("true") && !value.equals("false")) {
            throw new IllegalArgumentException(name + " must be true or false, but is \"" + text + "\"");
        }
        return value.equals("true");
    }

    static <E extends Enum<E>> @Nullable E constant(String name, @Nullable String text, Class<E> type) {
        if (text == null || text.isBlank()) {
            return null;
        }
        String wanted = text.strip().toUpperCase(Locale.ROOT).replace('-', '_');
        for (E constant : EnumSet.allOf(type)) {
            if (constant.name().equals(wanted)) {
                return constant;
            }
        }
        throw new IllegalArgumentException(
                name + " must be one of " + EnumSet.allOf(type) + ", but is \"" + text + "\"");
    }

    /** Reads a list that is separated by commas. */
    static List<String> list(String name, @Nullable String text) {
        return Arrays.stream(required(name, text).split(",", -1))
                .map(part -> required(name, part))
                .toList();
    }

    static Collection<Long> ids(@Nullable String text) {
        Set<Long> ids = new LinkedHashSet<>();
        for (String part : list("ids", text)) {
            ids.add(id("ids", part));
        }
        return ids;
    }
}
