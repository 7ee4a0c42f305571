package dev.pgworker.internal.argument;

import java.util.Locale;

/** Text of others in a line of the log. */
public final class LogText {

    private LogText() {}

    /** Returns the text with escapes for quotes and for all that is not to be seen, such as the ends of lines. */
    public static String visible(String text) {
        StringBuilder visible = new StringBuilder(text.length());
        text.codePoints().forEach(c -> {
            if (c == '"' || c == '\\') {
                visible.append('\\').append((char) c);
            } else if (isVisible(c)) {
                visible.appendCodePoint(c);
            } else {
                visible.append(String.format(Locale.ROOT, "\\u%04X", c));
            }
        });
        return visible.toString();
    }

    private static boolean isVisible(int c) {
        return switch (Character.getType(c)) {
            case Character.CONTROL,
                    Character.FORMAT,
                    Character.LINE_SEPARATOR,
                    Character.PARAGRAPH_SEPARATOR,
                    Character.SURROGATE,
                    Character.UNASSIGNED,
                    Character.PRIVATE_USE -> false;
            default -> true;
        };
    }
}
