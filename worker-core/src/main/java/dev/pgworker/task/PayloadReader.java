package dev.pgworker.task;

import java.util.HashSet;
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
 * Reads payloads of one type, with the top-level keys {@code _trace} and {@code _cron} tolerated.
 *
 * <p>A key that the mapper refuses as unknown is left out, and the payload is read again. That goes by the path of the
 * refusal because a {@code DeserializationProblemHandler} cannot tell the outermost object from an inner one: records
 * and polymorphic types are read from buffers that have lost their depth. A map has no unknown keys: there both are
 * left out from the start, unless it takes any value, so that no {@code Map<String, Price>} gets a price of that name.
 */
final class PayloadReader {

    private static final Set<String> RESERVED_KEYS = Set.of("_trace", "_cron");

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
            // A mapper may be told to read 0 or false instead.
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
                if (!isReservedAtTopLevel(e) || leftOut.contains(e.getPropertyName())) {
                    throw e;
                }
                leftOut = new HashSet<>(leftOut);
                leftOut.add(e.getPropertyName());
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

    private static boolean isReservedAtTopLevel(UnrecognizedPropertyException exception) {
        return exception.getPath().size() == 1 && RESERVED_KEYS.contains(exception.getPropertyName());
    }

    private @Nullable Object read(String payload, Set<String> leftOut) {
        if (leftOut.isEmpty() || leftOut.stream().noneMatch(payload::contains)) {
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

    /** Applies to the outermost object: what is included is included as a whole. */
    private static final class KeysLeftOut extends TokenFilter {

        private final Set<String> keys;

        KeysLeftOut(Set<String> keys) {
            this.keys = keys;
        }

        @Override
        public @Nullable TokenFilter includeProperty(String name) {
            return keys.contains(name) ? null : TokenFilter.INCLUDE_ALL;
        }

        @Override
        public boolean includeEmptyObject(boolean contentsFiltered) {
            return true;
        }
    }
}
