package dev.pgworker.internal.argument;

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

import org.jspecify.annotations.Nullable;

/** The limits that the schema sets to a job's attributes, checked before any SQL with the argument named. */
public final class Arguments {

    private static final int MAX_IDENTIFIER = 128;
    private static final int MAX_QUEUE_NAME = 128;
    private static final int MAX_KEY = 512;
    private static final int MAX_USER = 255;
    private static final Instant EARLIEST = Instant.parse("-4712-01-01T00:00:00Z");
    private static final Instant LATEST = Instant.parse("+294276-12-31T23:59:59Z");

    private static final Duration LONGEST_DELAY = Duration.ofDays(36_500);

    private Arguments() {}

    /** Returns the value unless it is null. */
    public static <T> T requireNonNull(String name, @Nullable T value) {
        if (value == null) {
            throw new IllegalArgumentException(name + " must not be null");
        }
        return value;
    }

    /** Returns the task identifier if it has 1 to 128 characters. */
    public static String requireIdentifier(@Nullable String identifier) {
        return requireText("identifier", requireNonNull("identifier", identifier), MAX_IDENTIFIER);
    }

    public static void requireQueueName(@Nullable String queueName) {
        if (queueName != null) {
            requireText("queueName", queueName, MAX_QUEUE_NAME);
        }
    }

    public static void requireJobKey(@Nullable String jobKey) {
        if (jobKey != null) {
            requireText("jobKey", jobKey, MAX_KEY);
        }
    }

    /** Returns the job key if it has 1 to 512 characters. */
    public static String requireGivenJobKey(@Nullable String jobKey) {
        return requireText("jobKey", requireNonNull("jobKey", jobKey), MAX_KEY);
    }

    /** Returns the name of a user if it has 1 to 255 characters. */
    public static String requireUser(@Nullable String user) {
        String given = requireNonNull("user", user);
        int length = given.codePointCount(0, given.length());
        if (length < 1 || length > MAX_USER) {
            throw new IllegalArgumentException("user must have 1 to " + MAX_USER + " characters, but has " + length);
        }
        return given;
    }

    /** Returns the text if it is neither null nor empty and PostgreSQL can store it. */
    public static String requireGivenText(String name, @Nullable String value) {
        return requireText(name, requireNonNull(name, value), Integer.MAX_VALUE);
    }

    /** Returns a copy without repetitions, in the same order; neither the collection nor an element may be null. */
    public static <T> Set<T> requireElements(String name, @Nullable Collection<? extends @Nullable T> values) {
        return new LinkedHashSet<>(requireList(name, values));
    }

    /** Returns a copy that cannot be changed; neither the collection nor an element may be null. */
    public static <T> List<T> requireList(String name, @Nullable Collection<? extends @Nullable T> values) {
        List<T> copy = new ArrayList<>();
        for (T value : requireNonNull(name, values)) {
            copy.add(requireNonNull(name + "[" + copy.size() + "]", value));
        }
        return Collections.unmodifiableList(copy);
    }

    /** Returns a copy that cannot be changed; neither the map nor a key or value may be null. */
    public static <K, V> Map<K, V> requireEntries(
            String name, @Nullable Map<? extends @Nullable K, ? extends @Nullable V> map) {
        Map<K, V> copy = new LinkedHashMap<>();
        requireNonNull(name, map).forEach((key, value) -> {
            K given = requireNonNull(name + ": a key", key);
            copy.put(given, requireNonNull(name + "[" + key + "]", value));
        });
        return Collections.unmodifiableMap(copy);
    }

    /** Refuses a number out of its range; null is allowed. */
    public static void requireRange(String name, @Nullable Integer value, int min, int max) {
        if (value != null && (value < min || value > max)) {
            throw new IllegalArgumentException(name + " must be between " + min + " and " + max + ", but is " + value);
        }
    }

    /** Refuses an instant that PostgreSQL cannot store; null is allowed. */
    public static void requireInstant(String name, @Nullable Instant value) {
        if (value != null && !isStorable(value)) {
            throw new IllegalArgumentException(name + " must lie between " + EARLIEST + " and " + LATEST
                    + ", the range of timestamps in PostgreSQL, but is " + value);
        }
    }

    /** Returns whether PostgreSQL can store the instant. */
    public static boolean isStorable(Instant value) {
        return !value.isBefore(EARLIEST) && !value.isAfter(LATEST);
    }

    /** Refuses a duration below zero or beyond what PostgreSQL can add to its clock. */
    public static void requireNotNegative(String name, Duration value) {
        requireNonNull(name, value);
        if (value.isNegative() || value.compareTo(LONGEST_DELAY) > 0) {
            throw new IllegalArgumentException(
                    name + " must be between 0 and " + LONGEST_DELAY.toDays() + " days, but is " + value);
        }
    }

    /** Returns the duration to the microsecond, as PostgreSQL keeps it, if it is within these limits. */
    public static Duration requireSpan(String name, @Nullable Duration value, Duration least, Duration most) {
        Duration given = requireNonNull(name, value);
        if (given.compareTo(least) < 0 || given.compareTo(most) > 0) {
            throw new IllegalArgumentException(
                    name + " must be between " + words(least) + " and " + words(most) + ", but is " + given);
        }
        return given.truncatedTo(ChronoUnit.MICROS);
    }

    /** Returns a delay of a hundred years at most; a negative one leads into the past. */
    public static Duration requireDelay(@Nullable Duration delay) {
        return requireSpan("delay", delay, LONGEST_DELAY.negated(), LONGEST_DELAY);
    }

    private static String words(Duration limit) {
        return limit.toDays() != 0 ? limit.toDays() + " days" : limit.toSeconds() + " s";
    }

    /** Returns the instant to the microsecond, as PostgreSQL keeps it; null for null. Refuses one that it cannot store. */
    public static @Nullable Instant requireStored(String name, @Nullable Instant value) {
        requireInstant(name, value);
        return value == null ? null : value.truncatedTo(ChronoUnit.MICROS);
    }

    /** Refuses a text that is longer or that PostgreSQL cannot store; null and the empty text are allowed. */
    public static void requireOptionalText(String name, @Nullable String value, int max) {
        if (value != null && !value.isEmpty()) {
            String unused = requireText(name, value, max);
        }
    }

    /** Returns the text if it has so many characters at most, at least one, and PostgreSQL can store it. */
    public static String requireGivenText(String name, @Nullable String value, int max) {
        return requireText(name, requireNonNull(name, value), max);
    }

    /** Refuses a number below zero. */
    public static void requireNotNegative(String name, long value) {
        if (value < 0) {
            throw new IllegalArgumentException(name + " must not be negative, but is " + value);
        }
    }

    public static void requireFlags(Collection<? extends @Nullable String> flags) {
        Set<String> seen = new HashSet<>();
        int index = 0;
        for (String flag : flags) {
            String name = "flags[" + index++ + "]";
            if (!seen.add(requireText(name, requireNonNull(name, flag), Integer.MAX_VALUE))) {
                throw new IllegalArgumentException(name + " must not repeat an earlier flag, but is \"" + flag + "\"");
            }
        }
    }

    private static String requireText(String name, String value, int max) {
        if (value.isEmpty()) {
            throw new IllegalArgumentException(name + " must not be empty");
        }
        // PostgreSQL counts characters, not UTF-16 units.
        int length = value.codePointCount(0, value.length());
        if (length > max) {
            throw new IllegalArgumentException(name + " must have at most " + max + " characters, but has " + length);
        }
        if (value.indexOf('\0') >= 0) {
            throw new IllegalArgumentException(name + " must not contain the NUL character, which PostgreSQL rejects");
        }
        return requireStorable(name, value);
    }

    /** Returns the text if it is well-formed UTF-16: the driver would store each lone surrogate as a question mark. */
    public static String requireStorable(String name, String value) {
        int lone = loneSurrogate(value);
        if (lone >= 0) {
            throw new IllegalArgumentException(String.format(
                    Locale.ROOT,
                    "%s must not contain a lone surrogate, which PostgreSQL cannot store, but has U+%04X at index %d",
                    name,
                    (int) value.charAt(lone),
                    lone));
        }
        return value;
    }

    /**
     * Returns what PostgreSQL can store of a text, at most so many UTF-16 units of it: U+FFFD stands for what it cannot.
     *
     * @param text null for null
     */
    public static @Nullable String storable(@Nullable String text, int most) {
        if (text == null) {
            return null;
        }
        String cut = text;
        if (text.length() > most) {
            cut = text.substring(0, Character.isHighSurrogate(text.charAt(most - 1)) ? most - 1 : most);
        }
        if (cut.indexOf('\0') < 0 && loneSurrogate(cut) < 0) {
            return cut;
        }
        StringBuilder result = new StringBuilder(cut.length());
        cut.codePoints().forEach(c -> {
            boolean lone = c >= Character.MIN_SURROGATE && c <= Character.MAX_SURROGATE;
            result.appendCodePoint(c == 0 || lone ? '\uFFFD' : c);
        });
        return result.toString();
    }

    /** Returns the index of the first surrogate that has no other half; -1 if there is none. */
    public static int loneSurrogate(String value) {
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c >= Character.MIN_SURROGATE && c <= Character.MAX_SURROGATE) {
                if (i + 1 == value.length() || !Character.isSurrogatePair(c, value.charAt(i + 1))) {
                    return i;
                }
                i++;
            }
        }
        return -1;
    }
}
