package dev.pgworker.crontab;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import java.util.function.UnaryOperator;

import org.jspecify.annotations.Nullable;

/** Reads the attributes of one annotation. It continues after a mistake, so that all can be reported at once. */
final class AttributeReader {

    private final String source;
    private final UnaryOperator<String> resolver;
    private final List<CrontabProblem> problems;
    private final int before;

    /**
     * Prepares reading.
     *
     * @param source the class and method, for messages
     * @param resolver replaces placeholders, or throws an {@code IllegalArgumentException}
     * @param problems takes what is wrong
     */
    AttributeReader(String source, UnaryOperator<String> resolver, List<CrontabProblem> problems) {
        this.source = source;
        this.resolver = resolver;
        this.problems = problems;
        before = problems.size();
    }

    /** Returns what the parser makes of an attribute's text; null if that has been left out, is empty or wrong. */
    <T> @Nullable T read(String attribute, String raw, Function<String, T> parser) {
        String text = raw;
        try {
            text = raw.isEmpty() ? raw : resolver.apply(raw);
            return text.isEmpty() ? null : parser.apply(text);
        } catch (IllegalArgumentException e) {
            add(attribute, text, String.valueOf(e.getMessage()));
            return null;
        }
    }

    /** Returns the texts of an attribute that has several, with placeholders replaced. */
    List<String> readAll(String attribute, String... raw) {
        return Arrays.stream(raw)
                .map(text -> Objects.requireNonNullElse(read(attribute, text, Function.identity()), ""))
                .toList();
    }

    /** Notes a mistake in an attribute. */
    void add(String attribute, String text, String message) {
        problems.add(new CrontabProblem(source + ", " + attribute, 0, 0, text, message));
    }

    /** Notes a mistake that is not one attribute's. */
    void add(String text, String message) {
        problems.add(new CrontabProblem(source, 0, 0, text, message));
    }

    /** Returns whether a mistake has been noted. */
    boolean hasProblems() {
        return problems.size() > before;
    }

    SourceLocation location() {
        return new SourceLocation(source, 0, 0);
    }
}
