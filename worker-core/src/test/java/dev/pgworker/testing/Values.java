package dev.pgworker.testing;

import java.lang.reflect.Array;
import java.lang.reflect.GenericArrayType;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.lang.reflect.TypeVariable;
import java.lang.reflect.WildcardType;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

/** Values of a type that nobody expects: null, the least, the most, the empty, and texts that PostgreSQL cannot store. */
public final class Values {

    private static final List<?> TEXTS = Arrays.asList(
            null, "", " ", "\0", "a\0b", "\uD800", "a\uDC00b", "'\";\\{}%s%d$1\n", "\u0661\u0662", "x".repeat(10_000));
    private static final List<?> INTS = List.of(Integer.MIN_VALUE, -1, 0, Integer.MAX_VALUE);
    private static final List<?> LONGS = List.of(Long.MIN_VALUE, -1L, 0L, Long.MAX_VALUE);
    private static final List<?> DOUBLES =
            List.of(Double.NaN, Double.NEGATIVE_INFINITY, -1.0, 0.0, Double.MAX_VALUE, Double.POSITIVE_INFINITY);
    private static final List<?> DURATIONS = Arrays.asList(
            null,
            Duration.ofSeconds(Long.MIN_VALUE),
            Duration.ofMillis(-1),
            Duration.ZERO,
            Duration.ofNanos(1),
            Duration.ofDays(200_000),
            Duration.ofSeconds(Long.MAX_VALUE, 999_999_999));
    private static final List<?> INSTANTS = Arrays.asList(
            null,
            Instant.MIN,
            Instant.parse("-4712-01-01T00:00:00Z"),
            Instant.EPOCH,
            Instant.parse("+294276-12-31T23:59:59.999999Z"),
            Instant.MAX);

    /** Cannot be written as JSON, as it has no end. */
    public static final class Endless {

        /** Returns this. */
        public Endless getNext() {
            return this;
        }
    }

    private Values() {}

    /** Returns such values, null among them unless the type is primitive. */
    public static List<?> hostile(Type type) {
        Class<?> raw = rawType(type);
        if (raw == boolean.class) {
            return List.of(false, true);
        }
        if (raw == int.class || raw == Integer.class) {
            return raw == int.class ? INTS : withNull(INTS);
        }
        if (raw == long.class || raw == Long.class) {
            return raw == long.class ? LONGS : withNull(LONGS);
        }
        if (raw == double.class || raw == Double.class) {
            return raw == double.class ? DOUBLES : withNull(DOUBLES);
        }
        if (raw == String.class) {
            return TEXTS;
        }
        if (raw == Duration.class) {
            return DURATIONS;
        }
        if (raw == Instant.class) {
            return INSTANTS;
        }
        if (raw == ZoneId.class) {
            return Arrays.asList(null, ZoneId.of("Pacific/Apia"), ZoneId.of("+18:00"));
        }
        if (raw == Object.class) {
            List<Object> values = new ArrayList<>(TEXTS);
            values.addAll(Arrays.asList(new Endless(), Map.of("\uD800", "\0"), Double.NaN, Object.class));
            return Collections.unmodifiableList(values);
        }
        if (raw.isEnum()) {
            return withNull(Arrays.asList(raw.getEnumConstants()));
        }
        if (raw.isArray()) {
            return arrays(raw.getComponentType());
        }
        if (raw == Collection.class || raw == List.class || raw == Set.class || raw == Stream.class) {
            return collections(raw, element(type));
        }
        if (raw == Map.class) {
            return Arrays.asList(null, Map.of(), Collections.singletonMap(null, null));
        }
        return Collections.singletonList(null);
    }

    private static List<?> withNull(List<?> values) {
        List<Object> all = new ArrayList<>(values);
        all.add(0, null);
        return Collections.unmodifiableList(all);
    }

    private static List<?> arrays(Class<?> component) {
        List<Object> arrays = new ArrayList<>(Arrays.asList(null, Array.newInstance(component, 0)));
        for (Object value : hostile(component)) {
            Object array = Array.newInstance(component, 1);
            Array.set(array, 0, value);
            arrays.add(array);
        }
        return Collections.unmodifiableList(arrays);
    }

    private static List<?> collections(Class<?> raw, Type element) {
        List<Object> collections = new ArrayList<>(Arrays.asList(null, collection(raw, List.of())));
        for (Object value : hostile(element)) {
            collections.add(collection(raw, Collections.singletonList(value)));
        }
        return Collections.unmodifiableList(collections);
    }

    /** Returns a collection or stream of that kind. */
    public static Object collection(Class<?> raw, List<?> values) {
        if (raw == Stream.class) {
            return values.stream();
        }
        return raw == Set.class ? new LinkedHashSet<>(values) : values;
    }

    /** Returns the type of what a collection, a stream or an array contains. */
    public static Type element(Type type) {
        if (type instanceof ParameterizedType generic) {
            return generic.getActualTypeArguments()[0];
        }
        return type instanceof Class<?> known && known.isArray() ? known.getComponentType() : Object.class;
    }

    /** Returns the class of a type. */
    public static Class<?> rawType(Type type) {
        if (type instanceof Class<?> known) {
            return known;
        }
        if (type instanceof ParameterizedType generic) {
            return rawType(generic.getRawType());
        }
        if (type instanceof GenericArrayType array) {
            return rawType(array.getGenericComponentType()).arrayType();
        }
        if (type instanceof WildcardType wildcard) {
            return rawType(wildcard.getUpperBounds()[0]);
        }
        return rawType(((TypeVariable<?>) type).getBounds()[0]);
    }
}
