package dev.pgworker.limit;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;
import org.springframework.format.datetime.standard.DurationFormatterUtils;

import dev.pgworker.internal.argument.Arguments;

/**
 * Reads limits from their attributes, see {@link Limit#attributes}, as configuration and commands have them.
 *
 * @since 0.1.0
 */
public final class LimitAttributes {

    private final Map<String, ? extends @Nullable Object> given;
    private final List<String> mistakes = new ArrayList<>();

    private LimitAttributes(Map<String, ? extends @Nullable Object> given) {
        this.given = given;
    }

    /**
     * Returns a limit. Attributes may be texts: numbers, a period such as {@code 1m}, tasks and weights separated by commas
     * ({@code acme=3,globex=0.5}). Those that are null count as absent, empty texts as well unless they are weights.
     *
     * @throws IllegalArgumentException if attributes are wrong or do not fit one another; the message lists all
     *     mistakes, each by the name of the attribute
     */
    public static Limit limit(String name, Map<String, ? extends @Nullable Object> attributes) {
        return new LimitAttributes(Arguments.requireNonNull("attributes", attributes)).limit(name);
    }

    private Limit limit(String name) {
        String checked = check(() -> Limit.requireName(name));
        String[] tasks =
                check(() -> Limit.requireTasks(texts(given.get("tasks"))).toArray(String[]::new));
        Integer maxRunning = read("maxRunning", each -> number("maxRunning", each));
        Integer maxStarts = read("maxStarts", each -> number("maxStarts", each));
        Duration period = read("period", LimitAttributes::period);
        Integer burst = read("burst", each -> number("burst", each));
        List<String> per = read("per", LimitAttributes::path);
        Map<String, Double> weights = read("weights", LimitAttributes::weights);
        checkKind();
        if (!mistakes.isEmpty()) {
            throw new IllegalArgumentException(String.join("; ", mistakes));
        }
        Limit limit = weights != null
                ? Limit.fairShare(checked, tasks).withWeights(weights)
                : maxRunning != null
                        ? Limit.concurrency(checked, maxRunning, tasks)
                        : Limit.rate(checked, Objects.requireNonNull(maxStarts), Objects.requireNonNull(period), tasks);
        limit = per == null ? limit : limit.per(per);
        return burst == null ? limit : limit.withBurst(burst);
    }

    private void checkKind() {
        if (has("maxRunning")) {
            refuse("maxRunning", "maxStarts", "period", "burst", "weights");
        } else if (has("weights")) {
            refuse("weights", "maxStarts", "period", "burst");
            require("weights", "per");
        } else if (has("maxStarts") || has("period") || has("burst")) {
            require("period", "maxStarts");
            require("maxStarts", "period");
        } else {
            mistakes.add("maxRunning must be set, or else maxStarts and period, or else weights and per");
        }
    }

    private void refuse(String kind, String... others) {
        Stream.of(others)
                .filter(this::has)
                .forEach(other -> mistakes.add(other + " must not be combined with " + kind));
    }

    private void require(String kind, String needed) {
        if (!has(needed)) {
            mistakes.add(needed + " must be set together with " + kind);
        }
    }

    private boolean has(String attribute) {
        Object value = given.get(attribute);
        return value != null
                && (attribute.equals("weights") || !value.toString().isBlank());
    }

    private <T> @Nullable T read(String attribute, Function<Object, T> reader) {
        return has(attribute) ? check(() -> reader.apply(Objects.requireNonNull(given.get(attribute)))) : null;
    }

    @SuppressWarnings(
            "NullAway") // Null is returned only where a mistake is noted, which is refused before the value is used.
    private <T> T check(Supplier<T> value) {
        try {
            return value.get();
        } catch (IllegalArgumentException e) {
            mistakes.add(String.valueOf(e.getMessage()));
            return null;
        }
    }

    private static int number(String attribute, Object value) {
        try {
            int number = Integer.parseInt(value.toString().strip());
            Arguments.requireRange(attribute, number, 1, Limit.MOST);
            return number;
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(attribute + " must be an integer, but is \"" + value + "\"", e);
        }
    }

    private static Duration period(Object value) {
        Duration period;
        try {
            period = value instanceof Duration duration
                    ? duration
                    : DurationFormatterUtils.detectAndParse(value.toString().strip());
        } catch (RuntimeException e) {
            throw new IllegalArgumentException("period must be a duration such as \"1m\", but is \"" + value + "\"", e);
        }
        return Limit.requirePeriod(period);
    }

    private static List<String> path(Object value) {
        return Limit.requirePath(
                value instanceof Collection<?> names
                        ? names.stream().map(String::valueOf).toList()
                        : Arrays.asList(value.toString().strip().split("\\.", -1)));
    }

    private static List<String> texts(@Nullable Object value) {
        return value instanceof Collection<?> each
                ? each.stream().map(String::valueOf).toList()
                : Arrays.stream(value == null ? new String[0] : value.toString().split(","))
                        .map(String::strip)
                        .filter(text -> !text.isEmpty())
                        .toList();
    }

    private static Map<String, Double> weights(Object value) {
        Map<String, Double> weights = new HashMap<>();
        if (value instanceof Map<?, ?> map) {
            map.forEach((key, weight) -> weights.put(String.valueOf(key), weight(key + "=" + weight)));
        } else {
            texts(value)
                    .forEach(text -> weights.put(text.substring(0, Math.max(0, text.lastIndexOf('='))), weight(text)));
        }
        return Limit.requireWeights(weights);
    }

    private static double weight(String text) {
        int equals = text.lastIndexOf('=');
        try {
            return Double.parseDouble(equals < 0 ? "" : text.substring(equals + 1));
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException("weights must be such as \"acme=3\", but one is \"" + text + "\"", e);
        }
    }
}
