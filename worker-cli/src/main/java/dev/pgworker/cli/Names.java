package dev.pgworker.cli;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Reads the names of an enum's constants in lower or upper case, with hyphens as well as underscores. */
final class Names<E extends Enum<E>> implements ITypeConverter<E> {

    private final Class<E> type;

    Names(Class<E> type) {
        this.type = type;
    }

    @Override
    public E convert(String text) {
        String name = text.replace('-', '_');
        for (E constant : type.getEnumConstants()) {
            if (constant.name().equalsIgnoreCase(name)) {
                return constant;
            }
        }
        String allowed = Arrays.stream(type.getEnumConstants())
                .map(constant -> constant.name().toLowerCase(Locale.ROOT))
                .collect(Collectors.joining(", "));
        throw new TypeConversionException("'" + text + "' must be one of " + allowed);
    }
}
