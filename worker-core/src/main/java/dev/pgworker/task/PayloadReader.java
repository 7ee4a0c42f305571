package dev.pgworker.task;

import java.util.HashSet;
import java.util.List;
import java.util.Set;

import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.core.JsonParser;
import tools.jackson.core.filter.FilteringParserDelegate;
import tools.jackson.core.filter.TokenFilter;
import tools.jackson.databind.JavaType;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.ObjectReader;
import tools.jackson.databind.exc.UnrecognizedPropertyException;
import tools.jackson.databind.json.JsonMapper;

/**
 * Reads payloads of one type, with the top-level keys {@code _trace} and {@code _cron} tolerated, and the schedule in the latter.
 *
 * <p>A key that the mapper refuses as unknown is left out, and the payload is read again. That goes by the path of the
 * refusal because a {@code DeserializationProblemHandler} cannot distinguish the outermost object from an inner one:
 * records and polymorphic types are read from buffers that have lost their depth. A map has no unknown keys: there both
 * are left out from the start, unless it takes any value, so that no {@code Map<String, Price>} gets a price of that
 * name.
 */
final class PayloadReader {

    private static final String CRON = "_cron";
    private static final Set<String> RESERVED_KEYS = Set.of("_trace", CRON);

    /** Peers do not add it, so that a type made for their payloads may refuse it. */
    private static final String SCHEDULE = "schedule";

    /** Stands for it in what is left out. */
    private static final String CRON_SCHEDULE = CRON + "." + SCHEDULE;

    private final ObjectReader reader;
    private final boolean primitive;
    private final boolean mayBeNull;
    private final boolean mayBeObject;
    private final boolean finalType;

    /** What to leave out at once. It only grows, and losing an update to a race costs one more reading. */
    private volatile Set<String> unknownKeys;

    private PayloadReader(ObjectReader reader, JavaType type, Set<String> unknownKeys) {
        this.reader = reader;
        this.primitive = type.isPrimitive();
        this.mayBeNull = type.hasRawClass(Void.class);
        this.mayBeObject = !mayBeNull && !type.isArrayType() && !type.isCollectionLikeType();
        this.finalType = type.isFinal();
        this.unknownKeys = unknownKeys;
    }

    static PayloadReader of(JsonMapper mapper, JavaType type) {
        boolean typedMap =
                type.isMapLikeType() && !(takesAnyKey(type.getKeyType()) && takesAnyValue(type.getContentType()));
        return new PayloadReader(mapper.readerFor(type), type, typedMap ? RESERVED_KEYS : Set.of());
    }

    private static boolean takesAnyKey(JavaType type) {
        return type.hasRawClass(String.class) || type.isJavaLangObject();
    }

    private static boolean takesAnyValue(JavaType type) {
        return type.isJavaLangObject() || type.hasRawClass(JsonNode.class);
    }

    /** Returns true if null is a proper result for this type. */
    boolean mayBeNull() {
        return mayBeNull;
    }

    @Nullable Object read(String payload) {
        boolean isNull = payload.strip().equals("null");
        if (primitive && isNull) {
            // A mapper may be configured to read 0 or false instead.
            return null;
        }
        if (isNull && mayBeObject) {
            return readNothing();
        }
        Set<String> leftOut = unknownKeys;
        while (true) {
            try {
                return read(payload, leftOut);
            } catch (UnrecognizedPropertyException e) {
                String key = reservedKey(e);
                if (key == null || leftOut.contains(key)) {
                    throw e;
                }
                leftOut = new HashSet<>(leftOut);
                leftOut.add(key);
                if (finalType) {
                    // No subtype can know the key, so that the next payload need not fail first.
                    unknownKeys = leftOut;
                }
            }
        }
    }

    /** No payload: others store it as null, and here it is the empty object. */
    private @Nullable Object readNothing() {
        Object value = reader.readValue("null");
        if (value != null) {
            return value;
        }
        try {
            return reader.readValue("{}");
        } catch (JacksonException e) {
            return null;
        }
    }

    /** Returns null if the key is one that the type has to know. */
    private static @Nullable String reservedKey(UnrecognizedPropertyException refusal) {
        List<JacksonException.Reference> path = refusal.getPath();
        String key = refusal.getPropertyName();
        if (path.size() == 1 && RESERVED_KEYS.contains(key)) {
            return key;
        }
        return path.size() == 2 && CRON.equals(path.get(0).getPropertyName()) && SCHEDULE.equals(key)
                ? CRON_SCHEDULE
                : null;
    }

    private @Nullable Object read(String payload, Set<String> leftOut) {
        if (leftOut.isEmpty() || RESERVED_KEYS.stream().noneMatch(payload::contains)) {
            return reader.readValue(payload);
        }
        try (JsonParser parser = new FilteringParserDelegate(
                reader.createParser(payload),
                new KeysLeftOut(leftOut),
                TokenFilter.Inclusion.INCLUDE_ALL_AND_PATH,
                true)) {
            return reader.readValue(parser);
        }
    }

    /** Applies to one object: what it includes is included as a whole, but for what is left out of {@code _cron}. */
    private static final class KeysLeftOut extends TokenFilter {

        private final Set<String> keys;

        KeysLeftOut(Set<String> keys) {
            this.keys = keys;
        }

        @Override
        public @Nullable TokenFilter includeProperty(String name) {
            if (keys.contains(name)) {
                return null;
            }
            return name.equals(CRON) && keys.contains(CRON_SCHEDULE)
                    ? new KeysLeftOut(Set.of(SCHEDULE))
                    : TokenFilter.INCLUDE_ALL;
        }

        @Override
        public boolean includeEmptyObject(boolean contentsFiltered) {
            return true;
        }
    }
}
