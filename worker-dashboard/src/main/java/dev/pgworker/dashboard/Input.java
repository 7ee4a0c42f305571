package dev.pgworker.dashboard;

import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import jakarta.servlet.http.HttpServletRequest;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/** The parameters of a request, from its query or its body; a wrong one is refused by its name. */
final class Input {

    /** As many ids as one request may name. */
    private static final int MOST_IDS = 1000;

    private static final Pattern WINDOW = Pattern.compile("([0-9]{1,4})([mh])");

    private final Function<String, @Nullable JsonNode> lists;
    private final Function<String, @Nullable String> texts;

    private Input(Function<String, @Nullable JsonNode> lists, Function<String, @Nullable String> texts) {
        this.lists = lists;
        this.texts = texts;
    }

    static Input query(HttpServletRequest request) {
        return new Input(name -> null, name -> parameter(request, name));
    }

    private static @Nullable String parameter(HttpServletRequest request, String name) {
        try {
            return request.getParameter(name);
        } catch (IllegalStateException e) {
            // In this way Tomcat says so.
            throw new IllegalArgumentException("The query of the address must be UTF-8, percent-encoded", e);
        }
    }

    static Input body(JsonNode body) {
        if (!body.isObject()) {
            throw new IllegalArgumentException("The body must be a JSON object");
        }
        return new Input(body::get, name -> scalar(name, body.get(name)));
    }

    private static @Nullable String scalar(String name, @Nullable JsonNode value) {
        if (value == null || value.isNull()) {
            return null;
        }
        if (!value.isValueNode()) {
            throw new IllegalArgumentException(name + " must be a text, a number or a boolean");
        }
        return value.asString();
    }

    /** Returns an object in the body; an empty one if it is not given. */
    Input object(String name) {
        JsonNode value = lists.apply(name);
        return value == null || value.isNull() ? body(Json.read(name, "{}")) : body(value);
    }

    @Nullable String text(String name) {
        String text = texts.apply(name);
        return text == null || text.isEmpty() ? null : text;
    }

    String required(String name) {
        String text = given(name);
        if (text.isBlank()) {
            throw new IllegalArgumentException(name + " is required");
        }
        return text;
    }

    /** Returns a text that may consist of spaces. */
    String given(String name) {
        String text = text(name);
        if (text == null) {
            throw new IllegalArgumentException(name + " is required");
        }
        return text;
    }

    @Nullable Integer integer(String name) {
        return parse(name, "an integer", Integer::valueOf);
    }

    int integer(String name, int standard, int min, int max) {
        Integer value = integer(name);
        if (value != null && (value < min || value > max)) {
            throw new IllegalArgumentException(name + " must be between " + min + " and " + max + ", but is " + value);
        }
        return value == null ? standard : value;
    }

    @Nullable Long number(String name) {
        return parse(name, "a whole number", Long::valueOf);
    }

    @Nullable Instant instant(String name) {
        return parse(name, "an instant such as 2026-01-01T00:00:00Z", Instant::parse);
    }

    @Nullable Duration duration(String name) {
        return parse(name, "a duration such as PT90M", Duration::parse);
    }

    Duration requiredDuration(String name) {
        required(name);
        return Objects.requireNonNull(duration(name));
    }

    ZoneId requiredZone(String name) {
        required(name);
        return Objects.requireNonNull(parse(name, "a time zone such as Europe/Berlin", ZoneId::of));
    }

    /** Reads a span of time such as 15m or 24h, of a minute to a day. */
    Duration window(String name, Duration standard) {
        String text = text(name);
        if (text == null) {
            return standard;
        }
        Matcher matcher = WINDOW.matcher(text);
        if (matcher.matches()) {
            int number = Integer.parseInt(matcher.group(1));
            Duration window = matcher.group(2).equals("h") ? Duration.ofHours(number) : Duration.ofMinutes(number);
            if (!window.isZero() && window.compareTo(Duration.ofHours(24)) <= 0) {
                return window;
            }
        }
        throw new IllegalArgumentException(name + " must be between 1m and 24h, such as 15m, but is \"" + text + "\"");
    }

    boolean flag(String name) {
        String text = text(name);
        if (text == null || text.equals("false")) {
            return false;
        }
        if (!text.equals("true")) {
            throw new IllegalArgumentException(name + " must be true or false, but is \"" + text + "\"");
        }
        return true;
    }

    /** Returns true or false; null if it is not given. */
    @Nullable Boolean optionalFlag(String name) {
        return text(name) == null ? null : flag(name);
    }

    <E extends Enum<E>> @Nullable E constant(String name, Class<E> type) {
        String text = text(name);
        if (text == null) {
            return null;
        }
        for (E constant : type.getEnumConstants()) {
            if (constant.name().equals(text.toUpperCase(Locale.ROOT).replace('-', '_'))) {
                return constant;
            }
        }
        List<String> allowed = new ArrayList<>();
        for (E constant : type.getEnumConstants()) {
            allowed.add(constant.name().toLowerCase(Locale.ROOT));
        }
        throw new IllegalArgumentException(
                name + " must be one of " + String.join(", ", allowed) + ", but is \"" + text + "\"");
    }

    private <T> @Nullable T parse(String name, String wanted, Function<String, T> parser) {
        String text = text(name);
        try {
            return text == null ? null : parser.apply(text);
        } catch (NumberFormatException | DateTimeException | ArithmeticException e) {
            throw new IllegalArgumentException(name + " must be " + wanted + ", but is \"" + text + "\"", e);
        }
    }

    /** Returns whether the body has this, which may be an object or a list. */
    boolean has(String name) {
        JsonNode value = lists.apply(name);
        return value != null && !value.isNull();
    }

    /** Returns a list of texts in the body; an empty one if it is not given. */
    List<String> texts(String name) {
        JsonNode list = lists.apply(name);
        if (list == null || list.isNull()) {
            return List.of();
        }
        if (!list.isArray()) {
            throw new IllegalArgumentException(name + " must be a list");
        }
        List<String> texts = new ArrayList<>();
        for (JsonNode element : list) {
            String text = scalar("Each of " + name, element);
            if (text == null || text.isEmpty()) {
                throw new IllegalArgumentException("Each of " + name + " must be given");
            }
            texts.add(text);
        }
        return texts;
    }

    /** Returns the ids in the body, at least one. */
    Set<Long> ids() {
        Set<Long> ids = numbers("ids", texts("ids"), MOST_IDS);
        if (ids.isEmpty()) {
            throw new IllegalArgumentException("ids is required: a list of at least one id");
        }
        return ids;
    }

    static Set<Long> numbers(String name, List<String> texts, int most) {
        if (texts.size() > most) {
            throw new IllegalArgumentException(name + " must have at most " + most + " ids, but has " + texts.size());
        }
        Set<Long> ids = new LinkedHashSet<>();
        for (String text : texts) {
            try {
                ids.add(Long.valueOf(text));
            } catch (NumberFormatException e) {
                throw new IllegalArgumentException(name + " must be ids of jobs, but one is \"" + text + "\"", e);
            }
        }
        return ids;
    }
}
