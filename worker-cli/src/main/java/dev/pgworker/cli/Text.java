package dev.pgworker.cli;

import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.temporal.ChronoUnit;
import java.util.Locale;

import org.jspecify.annotations.Nullable;

/** Values as people read them. Nothing that the database holds can steer the terminal. */
final class Text {

    private static final Instant INFINITY = OffsetDateTime.MAX.toInstant();
    private static final Instant MINUS_INFINITY = OffsetDateTime.MIN.toInstant();

    private Text() {}

    /** Returns a time to its last digit. */
    static String time(Instant time) {
        if (time.equals(INFINITY)) {
            return "infinity";
        }
        return time.equals(MINUS_INFINITY) ? "-infinity" : time.toString();
    }

    /** Returns a time to the second; nothing for null. */
    static String seconds(@Nullable Instant time) {
        if (time == null) {
            return "";
        }
        return time.equals(INFINITY) || time.equals(MINUS_INFINITY)
                ? time(time)
                : time.truncatedTo(ChronoUnit.SECONDS).toString();
    }

    /** Returns a duration with its two greatest units. */
    static String duration(Duration duration) {
        long seconds = duration.toSeconds();
        if (seconds < 1 && !duration.isZero()) {
            return duration.toMillis() + "ms";
        }
        if (seconds < 60) {
            return seconds + "s";
        }
        if (seconds < 3600) {
            return duration.toMinutes() + "m" + pad(duration.toSecondsPart(), "s");
        }
        if (seconds < 86_400) {
            return duration.toHours() + "h" + pad(duration.toMinutesPart(), "m");
        }
        return duration.toDays() + "d" + pad(duration.toHoursPart(), "h");
    }

    private static String pad(int part, String unit) {
        return part == 0 ? "" : part + unit;
    }

    /** Returns "1 job", "2 jobs". */
    static String count(long number, String one) {
        return String.format(Locale.ROOT, "%,d ", number) + one + (number == 1 ? "" : "s");
    }

    /** Returns the text in one line, with the first of its lines only and without control characters. */
    static String line(@Nullable String text) {
        if (text == null) {
            return "";
        }
        String stripped = text.strip();
        int end = 0;
        while (end < stripped.length() && stripped.charAt(end) != '\n' && stripped.charAt(end) != '\r') {
            end++;
        }
        return visible(stripped.substring(0, end)).replace('\t', ' ');
    }

    /** Returns the text with its line breaks and tabs, and other characters that steer a terminal as escapes. */
    static String visible(String text) {
        StringBuilder visible = new StringBuilder(text.length());
        text.codePoints().forEach(c -> {
            if (c == '\n' || c == '\t' || !steers(c)) {
                visible.appendCodePoint(c);
            } else {
                visible.append(String.format(Locale.ROOT, "\\u%04x", c));
            }
        });
        return visible.toString();
    }

    /** Controls, directions of writing, and halves of characters. */
    private static boolean steers(int c) {
        return Character.isISOControl(c)
                || (c >= 0x202a && c <= 0x202e)
                || (c >= 0x2066 && c <= 0x2069)
                || (c >= Character.MIN_SURROGATE && c <= Character.MAX_SURROGATE);
    }

    /** Returns how many columns a text takes. */
    static int columns(String text) {
        return text.codePoints().map(Text::columns).sum();
    }

    /** Returns the text, cut to the given number of columns with an ellipsis at its end. */
    static String cut(String text, int columns) {
        if (columns(text) <= columns) {
            return text;
        }
        StringBuilder cut = new StringBuilder();
        int taken = 1;
        for (int c : text.codePoints().toArray()) {
            taken += columns(c);
            if (taken > columns) {
                break;
            }
            cut.appendCodePoint(c);
        }
        return cut.append('…').toString();
    }

    private static int columns(int c) {
        int type = Character.getType(c);
        if (type == Character.NON_SPACING_MARK || type == Character.ENCLOSING_MARK || type == Character.FORMAT) {
            return 0;
        }
        boolean wide = (c >= 0x1100 && c <= 0x115f)
                || (c >= 0x2e80 && c <= 0xa4cf)
                || (c >= 0xac00 && c <= 0xd7a3)
                || (c >= 0xf900 && c <= 0xfaff)
                || (c >= 0xfe30 && c <= 0xfe6f)
                || (c >= 0xff00 && c <= 0xff60)
                || (c >= 0xffe0 && c <= 0xffe6)
                || (c >= 0x1f300 && c <= 0x1f64f)
                || (c >= 0x1f900 && c <= 0x1f9ff)
                || (c >= 0x20000 && c <= 0x3fffd);
        return wide ? 2 : 1;
    }
}
