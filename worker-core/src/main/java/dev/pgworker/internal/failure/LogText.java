package dev.pgworker.internal.failure;

import java.util.Arrays;

import org.jspecify.annotations.Nullable;

/**
 * Makes text of users fit for a log: line breaks and other control characters are written as in Java, so that no text begins a line,
 * moves a terminal's cursor or changes the direction of what follows; of a long text there is the beginning and the length.
 */
public final class LogText {

    /** So many characters are shown of one text. */
    static final int LIMIT = 4_000;

    /** Begins the second line and those after it of a text that keeps its lines. */
    private static final String INDENT = "\t| ";

    private LogText() {}

    /** Returns a text in one line. */
    public static String of(String text) {
        String beginning =
                text.length() > LIMIT ? text.substring(0, LIMIT) + " ... (" + text.length() + " characters)" : text;
        return isPlain(beginning) ? beginning : escaped(beginning, "");
    }

    static @Nullable Object[] ofAll(@Nullable Object @Nullable [] arguments) {
        if (arguments == null) {
            return new Object[0];
        }
        @Nullable Object[] shown = new Object[arguments.length];
        for (int i = 0; i < shown.length; i++) {
            shown[i] = ofArgument(arguments[i]);
        }
        return shown;
    }

    private static @Nullable Object ofArgument(@Nullable Object argument) {
        if (argument == null || argument instanceof Number || argument instanceof Boolean) {
            return argument;
        }
        try {
            return of(argument instanceof Object[] array ? Arrays.deepToString(array) : String.valueOf(argument));
        } catch (Throwable e) {
            return Headline.unreadable(argument, e);
        }
    }

    /** Returns a text that keeps its lines, none but the first of which begins like one of the log. */
    static String indented(String text) {
        return isPlain(text) ? text : escaped(text.replaceAll("\\R", "\n"), "\n" + INDENT);
    }

    /** Returns whether the lines of a text but the first begin with white space, and there are no other control characters. */
    static boolean isIndented(@Nullable String text) {
        if (text == null) {
            return true;
        }
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            boolean lineEnd = c == '\n' || (c == '\r' && i + 1 < text.length() && text.charAt(i + 1) == '\n');
            boolean harmless = lineEnd
                    ? c == '\r' || i + 1 == text.length() || " \t\r\n".indexOf(text.charAt(i + 1)) >= 0
                    : isPlain(c);
            if (!harmless) {
                return false;
            }
        }
        return true;
    }

    private static boolean isPlain(String text) {
        return text.chars().allMatch(c -> isPlain((char) c));
    }

    private static boolean isPlain(char c) {
        if (c == '\t') {
            return true;
        }
        return switch (Character.getType(c)) {
            case Character.CONTROL, Character.LINE_SEPARATOR, Character.PARAGRAPH_SEPARATOR -> false;
            // Overrides of the direction of text.
            case Character.FORMAT -> !(c >= '\u202A' && c <= '\u202E') && !(c >= '\u2066' && c <= '\u2069');
            default -> true;
        };
    }

    /**
     * Writes control characters as in Java.
     *
     * @param lineBreak what to write for a line feed; empty for what others get
     */
    private static String escaped(String text, String lineBreak) {
        StringBuilder escaped = new StringBuilder(text.length() + 16);
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '\n') {
                escaped.append(lineBreak.isEmpty() ? "\\n" : lineBreak);
            } else if (c == '\r') {
                escaped.append("\\r");
            } else if (isPlain(c)) {
                escaped.append(c);
            } else {
                escaped.append("\\u").append(Integer.toHexString(c | 0x10000).substring(1));
            }
        }
        return escaped.toString();
    }
}
