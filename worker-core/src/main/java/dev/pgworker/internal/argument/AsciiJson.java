package dev.pgworker.internal.argument;

/**
 * JSON in which everything that is not ASCII is escaped, so that every encoding of a database has its characters. What is not ASCII
 * stands within strings of JSON only.
 */
public final class AsciiJson {

    private AsciiJson() {}

    /** Escapes what is not ASCII. */
    public static String escape(String text) {
        int first = 0;
        while (first < text.length() && text.charAt(first) < 0x80) {
            first++;
        }
        if (first == text.length()) {
            return text;
        }
        StringBuilder escaped = new StringBuilder(text.length() * 2).append(text, 0, first);
        for (int i = first; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c < 0x80) {
                escaped.append(c);
            } else {
                appendEscaped(escaped, c);
            }
        }
        return escaped.toString();
    }

    /** Escapes one character. */
    static void appendEscaped(StringBuilder to, char c) {
        to.append("\\u");
        for (int shift = 12; shift >= 0; shift -= 4) {
            to.append(Character.forDigit(c >> shift & 0xf, 16));
        }
    }

    /** Reverses {@link #escape}. A surrogate without its other half stays as it is, and so does what stands for ASCII. */
    public static String unescape(String json) {
        if (!json.contains("\\u")) {
            return json;
        }
        StringBuilder text = new StringBuilder(json.length());
        int i = 0;
        while (i < json.length()) {
            int c = escapedAt(json, i);
            if (c >= 0x80 && !Character.isSurrogate((char) c)) {
                text.append((char) c);
                i += 6;
            } else if (c >= 0x80 && Character.isSurrogatePair((char) c, (char) Math.max(0, escapedAt(json, i + 6)))) {
                text.append((char) c).append((char) escapedAt(json, i + 6));
                i += 12;
            } else {
                // A backslash and what it escapes are one.
                int end = Math.min(json.length(), json.charAt(i) == '\\' ? i + 2 : i + 1);
                text.append(json, i, end);
                i = end;
            }
        }
        return text.toString();
    }

    /** Returns the character whose escape begins here; -1 if none does. */
    private static int escapedAt(String json, int index) {
        if (index + 6 > json.length() || json.charAt(index) != '\\' || json.charAt(index + 1) != 'u') {
            return -1;
        }
        int c = 0;
        for (int i = index + 2; i < index + 6; i++) {
            int digit = Character.digit(json.charAt(i), 16);
            if (digit < 0 || json.charAt(i) > 'f') {
                return -1;
            }
            c = c << 4 | digit;
        }
        return c;
    }
}
