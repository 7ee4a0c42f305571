package dev.pgworker.task;

import java.lang.annotation.Annotation;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Type;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

import com.fasterxml.jackson.annotation.JsonCreator;
import com.fasterxml.jackson.annotation.JsonValue;
import org.springframework.core.ResolvableType;
import org.springframework.util.ClassUtils;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.annotation.JsonDeserialize;
import tools.jackson.databind.annotation.JsonSerialize;

/**
 * Whether what is written as one type may be read as another. The answer is no only where the two have nothing to do
 * with each other: payloads are JSON, and a mapper may be configured to read much.
 */
final class PayloadFit {

    /** Each is read as those that follow. */
    private static final List<String> NUMBERS = List.of(
            "java.lang.Byte",
            "java.lang.Short",
            "java.lang.Integer",
            "java.lang.Long",
            "java.math.BigInteger",
            "java.lang.Float",
            "java.lang.Double",
            "java.math.BigDecimal");

    private static final int FIRST_DECIMAL = NUMBERS.indexOf("java.lang.Float");

    private static final List<Class<? extends Annotation>> DECIDING =
            List.of(JsonValue.class, JsonCreator.class, JsonSerialize.class, JsonDeserialize.class);

    private PayloadFit() {}

    /**
     * Returns true unless payloads of one type cannot be read as another.
     *
     * @param written the type of a task's payloads
     * @param read the type that its handler takes
     */
    static boolean fits(Type written, Type read) {
        return written.equals(read) || fits(ResolvableType.forType(written), ResolvableType.forType(read));
    }

    private static boolean fits(ResolvableType written, ResolvableType read) {
        Class<?> from = boxed(written);
        Class<?> to = boxed(read);
        if (isOpen(from) || isOpen(to) || to == Void.class) {
            return true;
        }
        if (to == Optional.class || from == Optional.class) {
            return fits(unwrapped(written), unwrapped(read));
        }
        if (isList(from) || isList(to)) {
            return isList(from) && isList(to) && fits(item(written), item(read));
        }
        if (NUMBERS.contains(from.getName()) && NUMBERS.contains(to.getName())) {
            int taken = NUMBERS.indexOf(to.getName());
            return taken >= FIRST_DECIMAL || NUMBERS.indexOf(from.getName()) <= taken;
        }
        if (isText(from) && isText(to)) {
            return true;
        }
        if (from == String.class || to == String.class) {
            return from == to || isText(from) || isText(to);
        }
        return to.isAssignableFrom(from) ? argumentsFit(written, read, to) : from.isAssignableFrom(to);
    }

    private static boolean argumentsFit(ResolvableType written, ResolvableType read, Class<?> common) {
        ResolvableType[] given = written.as(common).getGenerics();
        ResolvableType[] taken = read.getGenerics();
        for (int i = 0; i < given.length && i < taken.length; i++) {
            if (!fits(given[i], taken[i])) {
                return false;
            }
        }
        return true;
    }

    private static Class<?> boxed(ResolvableType type) {
        return ClassUtils.resolvePrimitiveIfNecessary(type.resolve(Object.class));
    }

    private static boolean isOpen(Class<?> type) {
        return type == Object.class
                || JsonNode.class.isAssignableFrom(type)
                || Map.class.isAssignableFrom(type)
                || decidesItself(type);
    }

    /**
     * Returns true if annotations define how a type is written or read, so that a class may stand as a string, for
     * example.
     */
    private static boolean decidesItself(Class<?> type) {
        if (type.getName().startsWith("java.")) {
            return false;
        }
        Stream<AnnotatedElement> members = Stream.<AnnotatedElement[]>of(
                        new AnnotatedElement[] {type},
                        type.getDeclaredConstructors(),
                        type.getDeclaredMethods(),
                        type.getDeclaredFields())
                .flatMap(Stream::of);
        return members.anyMatch(member -> DECIDING.stream().anyMatch(member::isAnnotationPresent));
    }

    private static boolean isList(Class<?> type) {
        return (Iterable.class.isAssignableFrom(type) && !Path.class.isAssignableFrom(type))
                || (type.isArray() && type != byte[].class);
    }

    private static ResolvableType item(ResolvableType type) {
        return type.isArray()
                ? type.getComponentType()
                : type.as(Iterable.class).getGeneric(0);
    }

    private static ResolvableType unwrapped(ResolvableType type) {
        return type.resolve() == Optional.class ? type.getGeneric(0) : type;
    }

    /** What usually stands as a string in JSON. */
    private static boolean isText(Class<?> type) {
        return type.isEnum()
                || type == byte[].class
                || type == Character.class
                || (type.getName().startsWith("java.")
                        && !Number.class.isAssignableFrom(type)
                        && type != Boolean.class
                        && type != String.class
                        && !type.isArray()
                        && type != Void.class);
    }
}
