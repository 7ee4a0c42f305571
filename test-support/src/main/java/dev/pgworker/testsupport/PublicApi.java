package dev.pgworker.testsupport;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Field;
import java.lang.reflect.GenericArrayType;
import java.lang.reflect.Member;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.lang.reflect.TypeVariable;
import java.lang.reflect.WildcardType;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;

/**
 * What users of a module may call, extend or implement: its public types outside {@code dev.pgworker.internal}, with their
 * public and protected members. What every object, enum or record has is left out.
 */
public final class PublicApi {

    private static final String WRITE = "pgworker.public-api.write";
    private static final Path LIST = Path.of("src/test/resources/public-api.txt");
    private static final Path SOURCES = Path.of("src/main/java");
    private static final int SHOWN = Modifier.PROTECTED | Modifier.STATIC | Modifier.ABSTRACT | Modifier.FINAL;

    private final SortedSet<String> lines = new TreeSet<>();
    private final SortedSet<String> leaks = new TreeSet<>();
    private final List<Class<?>> types = new ArrayList<>();

    private PublicApi() {}

    /**
     * Reads the classes of a module.
     *
     * @param classes the directory that they have been compiled to
     */
    public static PublicApi of(Path classes) {
        PublicApi api = new PublicApi();
        try (Stream<Path> files = Files.walk(classes)) {
            files.map(file -> classes.relativize(file).toString().replace('\\', '/'))
                    .filter(file -> file.endsWith(".class") && !file.endsWith("-info.class"))
                    .map(file -> load(file.substring(0, file.length() - 6).replace('/', '.')))
                    .filter(PublicApi::isPublic)
                    .forEach(api::add);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return api;
    }

    private static Class<?> load(String name) {
        try {
            return Class.forName(name, false, PublicApi.class.getClassLoader());
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException(e);
        }
    }

    private static boolean isPublic(Class<?> type) {
        Class<?> outer = type.getEnclosingClass();
        return Modifier.isPublic(type.getModifiers())
                && !type.isAnonymousClass()
                && !isInternal(type)
                && (outer == null || isPublic(outer));
    }

    private static boolean isInternal(Class<?> type) {
        return type.getName().startsWith("dev.pgworker.internal.");
    }

    /** Returns a line for each type and each member, sorted; a member follows its type. */
    public List<String> lines() {
        return List.copyOf(lines);
    }

    /** Returns the lines that name a type of this project that is not public. */
    public List<String> leaks() {
        return List.copyOf(leaks);
    }

    /**
     * Returns the lines of the list that is checked in, after writing it anew if the system property
     * {@code pgworker.public-api.write} is true.
     */
    public List<String> checkedIn() {
        try {
            if (Boolean.getBoolean(WRITE)) {
                Files.write(LIST, lines);
            }
            return Files.readAllLines(LIST);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Returns the types whose Javadoc does not say in which version they came. */
    public List<String> withoutSince() {
        return types.stream()
                .filter(type -> !javadoc(type).contains("@since "))
                .map(Class::getName)
                .sorted()
                .toList();
    }

    /** Returns the Javadoc of a type, with the annotations below it, or an empty text. */
    private static String javadoc(Class<?> type) {
        Class<?> outermost = type;
        for (Class<?> outer = type; outer != null; outer = outer.getEnclosingClass()) {
            outermost = outer;
        }
        String source;
        try {
            source = Files.readString(SOURCES.resolve(outermost.getName().replace('.', '/') + ".java"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        Matcher declaration = Pattern.compile(
                        "(?m)^ *(?:[a-z-]+ )*(?:class|@?interface|record|enum) " + type.getSimpleName() + "\\b")
                .matcher(source);
        if (!declaration.find()) {
            throw new IllegalStateException("No declaration of " + type);
        }
        String before = source.substring(0, declaration.start());
        boolean own = before.substring(Math.max(before.lastIndexOf("*/"), 0))
                .lines()
                // Annotations have lists in braces of their own.
                .noneMatch(line -> line.endsWith(";")
                        || line.endsWith(") {")
                        || line.strip().equals("}"));
        return own ? before.substring(Math.max(before.lastIndexOf("/**"), 0)) : "";
    }

    private void add(Class<?> type) {
        types.add(type);
        List<Type> named = new ArrayList<>();
        if (!type.isAnnotation()) {
            Type superclass = type.getGenericSuperclass();
            if (superclass != null && superclass != Object.class && !type.isRecord() && !type.isEnum()) {
                named.add(superclass);
            }
            named.addAll(List.of(type.getGenericInterfaces()));
        }
        String parents = named.stream().map(Type::getTypeName).collect(Collectors.joining(", "));
        named.addAll(bounds(type.getTypeParameters()));
        line(
                type.getName() + " " + modifiersOf(type) + kind(type) + variables(type.getTypeParameters())
                        + (parents.isEmpty() ? "" : " of " + parents),
                named,
                PublicApi::isInternal);
        for (Class<?> declaring = type;
                declaring != null && (declaring == type || isHidden(declaring));
                declaring = declaring.getSuperclass()) {
            addMembers(type, declaring);
        }
    }

    /** Members of such a superclass are members of the class that users see. */
    private static boolean isHidden(Class<?> type) {
        return type.getName().startsWith("dev.pgworker.") && !isPublic(type);
    }

    private void addMembers(Class<?> type, Class<?> declaring) {
        for (Field field : declaring.getDeclaredFields()) {
            if (isVisible(field, type)) {
                member(type, field, field.getName(), field.getGenericType(), List.of());
            }
        }
        for (Method method : declaring.getDeclaredMethods()) {
            if (isVisible(method, type) && !isImplied(method)) {
                member(type, method, signature(method.getName(), method), method.getGenericReturnType(), named(method));
            }
        }
        for (Constructor<?> constructor : declaring.getDeclaredConstructors()) {
            if (declaring == type && isVisible(constructor, type)) {
                member(type, constructor, signature("new", constructor), null, named(constructor));
            }
        }
    }

    private static boolean isVisible(Member member, Class<?> type) {
        int modifiers = member.getModifiers();
        boolean inherited = Modifier.isProtected(modifiers) && !Modifier.isFinal(type.getModifiers());
        return !member.isSynthetic() && (Modifier.isPublic(modifiers) || inherited);
    }

    private static boolean isImplied(Method method) {
        return switch (method.getName()) {
            case "equals", "hashCode", "toString", "values" -> true;
            case "valueOf" -> method.getDeclaringClass().isEnum();
            default -> false;
        };
    }

    private void member(Class<?> type, Member member, String signature, @Nullable Type result, List<Type> others) {
        List<Type> named = new ArrayList<>(others);
        if (result != null) {
            named.add(result);
        }
        String modifiers = modifiersOf(member, type);
        line(
                type.getName() + "#" + signature
                        + (result == null ? "" : ": " + modifiers + result.getTypeName())
                        + (member instanceof Method method && method.isDefault() ? " default" : ""),
                named,
                mentioned -> mentioned.getName().startsWith("dev.pgworker.") && !isPublic(mentioned));
    }

    private static String signature(String name, Executable executable) {
        String thrown = names(executable.getGenericExceptionTypes());
        return variables(executable.getTypeParameters()) + name + "(" + names(executable.getGenericParameterTypes())
                + ")" + (thrown.isEmpty() ? "" : " throws " + thrown);
    }

    private static List<Type> named(Executable executable) {
        List<Type> named = new ArrayList<>(List.of(executable.getGenericParameterTypes()));
        named.addAll(List.of(executable.getGenericExceptionTypes()));
        named.addAll(bounds(executable.getTypeParameters()));
        return named;
    }

    private static List<Type> bounds(TypeVariable<?>[] variables) {
        return Arrays.stream(variables)
                .flatMap(variable -> Stream.of(variable.getBounds()))
                .toList();
    }

    private static String names(Type[] types) {
        return Arrays.stream(types).map(Type::getTypeName).collect(Collectors.joining(", "));
    }

    private static String variables(TypeVariable<?>[] variables) {
        return variables.length == 0
                ? ""
                : Arrays.stream(variables)
                        .map(variable -> variable.getBounds()[0] == Object.class
                                ? variable.getName()
                                : variable.getName() + " extends " + names(variable.getBounds()))
                        .collect(Collectors.joining(", ", "<", ">"));
    }

    /** Leaves out what goes without saying: interfaces are abstract, records and enums are final. */
    private static String modifiersOf(Class<?> type) {
        return type.isInterface() || type.isRecord() || type.isEnum()
                ? ""
                : modifiers(type.getModifiers() & (Modifier.ABSTRACT | Modifier.FINAL));
    }

    /** Leaves out what goes without saying: members of interfaces are abstract, those of final types are final. */
    private static String modifiersOf(Member member, Class<?> type) {
        int shown = member.getModifiers() & SHOWN;
        if (type.isInterface()) {
            shown &= ~Modifier.ABSTRACT;
        }
        if (Modifier.isFinal(type.getModifiers()) || (member instanceof Field && type.isInterface())) {
            shown &= ~Modifier.FINAL;
        }
        return modifiers(shown);
    }

    private static String modifiers(int modifiers) {
        return modifiers == 0 ? "" : Modifier.toString(modifiers) + " ";
    }

    private static String kind(Class<?> type) {
        if (type.isAnnotation()) {
            return "annotation";
        }
        if (type.isInterface()) {
            return type.isSealed() ? "sealed interface" : "interface";
        }
        if (type.isRecord()) {
            return "record";
        }
        return type.isEnum() ? "enum" : "class";
    }

    private void line(String line, List<Type> named, Predicate<Class<?>> forbidden) {
        lines.add(line);
        Set<Class<?>> classes = new HashSet<>();
        named.forEach(type -> collect(type, classes));
        classes.stream().filter(forbidden).forEach(type -> leaks.add(line));
    }

    private static void collect(Type type, Set<Class<?>> classes) {
        if (type instanceof Class<?> known) {
            classes.add(known.isArray() ? elementOf(known) : known);
        } else if (type instanceof ParameterizedType generic) {
            collect(generic.getRawType(), classes);
            Stream.of(generic.getActualTypeArguments()).forEach(argument -> collect(argument, classes));
        } else if (type instanceof GenericArrayType array) {
            collect(array.getGenericComponentType(), classes);
        } else if (type instanceof WildcardType wildcard) {
            Stream.of(wildcard.getLowerBounds()).forEach(bound -> collect(bound, classes));
            Stream.of(wildcard.getUpperBounds()).forEach(bound -> collect(bound, classes));
        }
    }

    private static Class<?> elementOf(Class<?> array) {
        Class<?> component = array.getComponentType();
        return component.isArray() ? elementOf(component) : component;
    }
}
