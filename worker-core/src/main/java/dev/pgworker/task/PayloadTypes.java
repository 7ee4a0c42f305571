package dev.pgworker.task;

import java.lang.reflect.GenericArrayType;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.lang.reflect.TypeVariable;
import java.lang.reflect.WildcardType;
import java.util.HashMap;
import java.util.Map;

import org.jspecify.annotations.Nullable;
import org.springframework.core.ResolvableType;

/** Turns the declared type of a parameter into the type it has in the concrete class of a bean. */
final class PayloadTypes {

    /** An array whose component is a generic type; {@code ResolvableType} would drop the type arguments. */
    private record ArrayOf(Type component) implements GenericArrayType {

        @Override
        public Type getGenericComponentType() {
            return component;
        }

        @Override
        public String getTypeName() {
            return component.getTypeName() + "[]";
        }
    }

    private final Map<TypeVariable<?>, Type> variables = new HashMap<>();

    /** Knows what the given class, its superclasses and interfaces put in for type variables. */
    PayloadTypes(Class<?> targetClass) {
        collect(targetClass);
    }

    private void collect(Class<?> type) {
        collectFrom(type.getGenericSuperclass());
        for (Type implemented : type.getGenericInterfaces()) {
            collectFrom(implemented);
        }
    }

    private void collectFrom(@Nullable Type supertype) {
        if (supertype instanceof ParameterizedType parameterized) {
            Class<?> raw = (Class<?>) parameterized.getRawType();
            Type[] arguments = parameterized.getActualTypeArguments();
            for (int i = 0; i < arguments.length; i++) {
                variables.put(raw.getTypeParameters()[i], resolve(arguments[i]));
            }
            collect(raw);
        } else if (supertype instanceof Class<?> raw) {
            collect(raw);
        }
    }

    /** Returns the type with its variables replaced, as far as they are known. */
    Type resolve(Type type) {
        if (type instanceof TypeVariable<?> variable) {
            return variables.getOrDefault(variable, variable);
        }
        if (type instanceof ParameterizedType parameterized) {
            Type[] arguments = parameterized.getActualTypeArguments();
            ResolvableType[] resolved = new ResolvableType[arguments.length];
            for (int i = 0; i < arguments.length; i++) {
                resolved[i] = ResolvableType.forType(resolve(arguments[i]));
            }
            return ResolvableType.forClassWithGenerics((Class<?>) parameterized.getRawType(), resolved)
                    .getType();
        }
        if (type instanceof GenericArrayType array) {
            return new ArrayOf(resolve(array.getGenericComponentType()));
        }
        if (type instanceof WildcardType wildcard) {
            // A lower bound does not limit what is read. Otherwise "? extends Shape" is Shape and "?" is Object;
            // Kotlin declares wildcards wherever a type argument is not final.
            return wildcard.getLowerBounds().length > 0 ? wildcard : resolve(wildcard.getUpperBounds()[0]);
        }
        return type;
    }

    /** Returns the variable or wildcard that leaves a resolved type open, or null if the type is complete. */
    static @Nullable Type openPart(Type resolved) {
        if (resolved instanceof TypeVariable<?> || resolved instanceof WildcardType) {
            return resolved;
        }
        if (resolved instanceof ParameterizedType parameterized) {
            for (Type argument : parameterized.getActualTypeArguments()) {
                Type open = openPart(argument);
                if (open != null) {
                    return open;
                }
            }
        }
        if (resolved instanceof GenericArrayType array) {
            return openPart(array.getGenericComponentType());
        }
        return null;
    }
}
