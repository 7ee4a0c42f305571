package dev.pgworker.task;

import java.util.Set;

import org.jspecify.annotations.Nullable;
import tools.jackson.core.JsonParser;
import tools.jackson.core.TokenStreamContext;
import tools.jackson.core.filter.FilteringParserDelegate;
import tools.jackson.core.filter.TokenFilter;
import tools.jackson.databind.DeserializationContext;
import tools.jackson.databind.JavaType;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.ObjectReader;
import tools.jackson.databind.ValueDeserializer;
import tools.jackson.databind.deser.DeserializationProblemHandler;
import tools.jackson.databind.json.JsonMapper;

/**
 * Reads payloads of one type, with the top-level keys {@code _trace} and {@code _cron} tolerated.
 *
 * <p>Types with named properties ignore the keys where they would be unknown. A map has no unknown keys: there they are
 * left out, unless the map takes any value, so that no {@code Map<String, Price>} gets a price called "_trace".
 */
final class PayloadReader {

    private static final Set<String> RESERVED_KEYS = Set.of("_trace", "_cron");

    private final ObjectReader reader;
    private final boolean leavesReservedKeysOut;
    private final boolean primitive;
    private final boolean mayBeNull;

    private PayloadReader(ObjectReader reader, boolean leavesReservedKeysOut, boolean primitive, boolean mayBeNull) {
        this.reader = reader;
        this.leavesReservedKeysOut = leavesReservedKeysOut;
        this.primitive = primitive;
        this.mayBeNull = mayBeNull;
    }

    static PayloadReader of(JsonMapper mapper, JavaType type) {
        return new PayloadReader(
                mapper.readerFor(type).withHandler(new ReservedKeysTolerated()),
                type.isMapLikeType() && !(takesAnyKey(type.getKeyType()) && takesAnyValue(type.getContentType())),
                type.isPrimitive(),
                type.hasRawClass(Void.class));
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
        if (primitive && payload.strip().equals("null")) {
            // A mapper may be told to read 0 or false instead.
            return null;
        }
        if (leavesReservedKeysOut && mayHaveReservedKeys(payload)) {
            try (JsonParser parser = new FilteringParserDelegate(
                    reader.createParser(payload),
                    new ReservedKeysLeftOut(),
                    TokenFilter.Inclusion.INCLUDE_ALL_AND_PATH,
                    true)) {
                return reader.readValue(parser);
            }
        }
        return reader.readValue(payload);
    }

    private static boolean mayHaveReservedKeys(String payload) {
        for (String key : RESERVED_KEYS) {
            if (payload.contains(key)) {
                return true;
            }
        }
        return false;
    }

    private static final class ReservedKeysTolerated extends DeserializationProblemHandler {

        @Override
        public boolean handleUnknownProperty(
                DeserializationContext context,
                JsonParser parser,
                ValueDeserializer<?> deserializer,
                Object beanOrClass,
                String name) {
            if (!RESERVED_KEYS.contains(name) || !isTopLevel(parser)) {
                return false;
            }
            parser.skipChildren();
            return true;
        }

        private static boolean isTopLevel(JsonParser parser) {
            TokenStreamContext context = parser.streamReadContext();
            // The parser stands at the property's value; the context of an object or array is already its own.
            TokenStreamContext owner = parser.currentToken().isStructStart() ? context.getParent() : context;
            return owner != null
                    && owner.getParent() != null
                    && owner.getParent().inRoot();
        }
    }

    private static final class ReservedKeysLeftOut extends TokenFilter {

        @Override
        public @Nullable TokenFilter includeProperty(String name) {
            return RESERVED_KEYS.contains(name) ? null : TokenFilter.INCLUDE_ALL;
        }

        @Override
        public boolean includeEmptyObject(boolean contentsFiltered) {
            return true;
        }
    }
}
