package dev.pgworker.crontab;

import java.math.BigInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

/**
 * Reads a JSON5 text. Numbers are doubles, as in JavaScript; NaN and the infinities, which JSON lacks, become null; of
 * several members with one name the last counts.
 */
final class Json5 {

    private static final JsonNodeFactory nodes = JsonNodeFactory.instance;
    private static final int MAX_DEPTH = 500;
    private static final double MAX_EXACT = 9_007_199_254_740_991d;
    private static final Pattern NUMBER = Pattern.compile("[+-]?(?:(?<word>Infinity|NaN)|0[xX](?<hex>[0-9a-fA-F]+)"
            + "|(?<dec>(?:(?:0|[1-9][0-9]*)(?:\\.[0-9]*)?|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?))");

    private final String text;
    private int at;
    private int depth;
    private final boolean exact;

    private Json5(String text, boolean exact) {
        this.text = text;
        this.exact = exact;
    }

    /** Reads a text that holds one value. */
    static JsonNode parse(String text) throws InvalidJson5Exception {
        return parse(text, false);
    }

    /** As {@link #parse(String)}, but refuses whole numbers of which a double loses digits. */
    static JsonNode parseExactly(String text) throws InvalidJson5Exception {
        return parse(text, true);
    }

    private static JsonNode parse(String text, boolean exact) throws InvalidJson5Exception {
        Json5 reader = new Json5(text, exact);
        JsonNode value = reader.value();
        reader.skipSpace();
        if (reader.at < text.length()) {
            throw reader.invalid("must end after the value");
        }
        return value;
    }

    /** A text that is not JSON5, with the offset of the mistake, from 0. */
    static final class InvalidJson5Exception extends Exception {

        private static final long serialVersionUID = 1L;
        private final int offset;

        InvalidJson5Exception(int offset, String message) {
            super(message);
            this.offset = offset;
        }

        int offset() {
            return offset;
        }
    }

    private JsonNode value() throws InvalidJson5Exception {
        skipSpace();
        return switch (peek()) {
            case '{' -> object();
            case '[' -> array();
            case '"', '\'' -> nodes.stringNode(string());
            default -> wordOrNumber();
        };
    }

    private JsonNode wordOrNumber() throws InvalidJson5Exception {
        if (takeWord("true")) {
            return nodes.booleanNode(true);
        }
        if (takeWord("false")) {
            return nodes.booleanNode(false);
        }
        return takeWord("null") ? nodes.nullNode() : number();
    }

    private ObjectNode object() throws InvalidJson5Exception {
        ObjectNode object = nodes.objectNode();
        enter();
        while (!take('}')) {
            String name = name();
            expect(':');
            object.set(name, value());
            if (!take(',')) {
                expect('}');
                break;
            }
        }
        depth--;
        return object;
    }

    private ArrayNode array() throws InvalidJson5Exception {
        ArrayNode array = nodes.arrayNode();
        enter();
        while (!take(']')) {
            array.add(value());
            if (!take(',')) {
                expect(']');
                break;
            }
        }
        depth--;
        return array;
    }

    private void enter() throws InvalidJson5Exception {
        if (++depth > MAX_DEPTH) {
            throw invalid("must not nest deeper than " + MAX_DEPTH);
        }
        at++;
    }

    private JsonNode number() throws InvalidJson5Exception {
        Matcher matcher = NUMBER.matcher(text).region(at, text.length());
        if (!matcher.lookingAt()) {
            throw invalid("must be a JSON5 value");
        }
        int start = at;
        at = matcher.end();
        if (Character.isDigit(peek()) || isNameStart(peek()) || peek() == '\\') {
            throw invalid("must not follow a number");
        }
        if (matcher.group("word") != null) {
            return nodes.nullNode();
        }
        String hex = matcher.group("hex");
        double size = hex == null ? Double.parseDouble(matcher.group("dec")) : new BigInteger(hex, 16).doubleValue();
        if (Double.isInfinite(size)) {
            return nodes.nullNode();
        }
        if (exact && size > MAX_EXACT && matcher.group().matches("[+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+)")) {
            at = start;
            throw invalid(
                    "must not have whole numbers beyond 9007199254740991: workers on Node.js lose digits of them");
        }
        double value = matcher.group().startsWith("-") ? -size : size;
        return Math.abs(value) <= MAX_EXACT && value == Math.rint(value)
                ? nodes.numberNode((long) value)
                : nodes.numberNode(value);
    }

    private String name() throws InvalidJson5Exception {
        skipSpace();
        if (peek() == '"' || peek() == '\'') {
            return string();
        }
        StringBuilder name = new StringBuilder();
        while (true) {
            int start = at;
            int c = peek();
            at += c < 0 ? 0 : Character.charCount(c);
            if (c == '\\') {
                if (peek() != 'u') {
                    throw invalid("must be an escape \\uXXXX in a name");
                }
                at++;
                c = hexDigits(4);
            }
            if (!(name.isEmpty() ? isNameStart(c) : isNamePart(c))) {
                if (name.isEmpty() || (c >= 0 && text.charAt(start) == '\\')) {
                    at = start;
                    throw invalid("must be a name or a quoted string");
                }
                at = start;
                return name.toString();
            }
            name.appendCodePoint(c);
        }
    }

    private String string() throws InvalidJson5Exception {
        int quote = text.charAt(at++);
        StringBuilder content = new StringBuilder();
        while (true) {
            if (at >= text.length()) {
                throw invalid("must close the string with " + (char) quote);
            }
            char c = text.charAt(at);
            if (c == '\n' || c == '\r') {
                throw invalid("must not break the line inside a string");
            }
            at++;
            if (c == quote) {
                return content.toString();
            }
            if (c == '\\') {
                escape(content);
            } else {
                content.append(c);
            }
        }
    }

    private void escape(StringBuilder content) throws InvalidJson5Exception {
        int c = at < text.length() ? text.charAt(at) : -1;
        if (c < 0 || (c >= '1' && c <= '9')) {
            throw invalid("must be an escape of JSON5");
        }
        at++;
        switch (c) {
            case 'b' -> content.append('\b');
            case 'f' -> content.append('\f');
            case 'n' -> content.append('\n');
            case 'r' -> content.append('\r');
            case 't' -> content.append('\t');
            case 'v' -> content.append('\u000b');
            case 'x' -> content.append((char) hexDigits(2));
            case 'u' -> content.append((char) hexDigits(4));
            case '0' -> {
                if (Character.isDigit(peek())) {
                    throw invalid("must not follow \\0");
                }
                content.append('\0');
            }
            case '\r' -> at += peek() == '\n' ? 1 : 0;
            case '\n', '\u2028', '\u2029' -> {
                // A backslash at the end of a line continues the string on the next.
            }
            default -> content.append((char) c);
        }
    }

    private int hexDigits(int count) throws InvalidJson5Exception {
        int value = 0;
        for (int i = 0; i < count; i++) {
            int c = peek();
            int digit = c < 128 && c >= 0 ? Character.digit(c, 16) : -1;
            if (digit < 0) {
                throw invalid("must be " + count + " hexadecimal digits");
            }
            value = value * 16 + digit;
            at++;
        }
        return value;
    }

    private boolean takeWord(String word) {
        int end = at + word.length();
        if (text.startsWith(word, at) && (end == text.length() || !isNamePart(text.codePointAt(end)))) {
            at = end;
            return true;
        }
        return false;
    }

    private boolean take(char c) throws InvalidJson5Exception {
        skipSpace();
        if (peek() != c) {
            return false;
        }
        at++;
        return true;
    }

    private void expect(char c) throws InvalidJson5Exception {
        if (!take(c)) {
            throw invalid("must be " + c);
        }
    }

    private void skipSpace() throws InvalidJson5Exception {
        while (true) {
            if (text.startsWith("//", at)) {
                while (at < text.length() && "\n\r\u2028\u2029".indexOf(text.charAt(at)) < 0) {
                    at++;
                }
            } else if (text.startsWith("/*", at)) {
                int end = text.indexOf("*/", at + 2);
                if (end < 0) {
                    throw invalid("must close the comment with */");
                }
                at = end + 2;
            } else if (at < text.length() && isSpace(text.charAt(at))) {
                at++;
            } else {
                return;
            }
        }
    }

    /** Returns whether the character separates words, as JavaScript sees it. */
    static boolean isSpace(char c) {
        return (c >= '\t' && c <= '\r')
                || c == '\ufeff'
                || c == '\u2028'
                || c == '\u2029'
                || Character.getType(c) == Character.SPACE_SEPARATOR;
    }

    private static boolean isNameStart(int c) {
        return c == '$'
                || c == '_'
                || (c >= 0 && (Character.isLetter(c) || Character.getType(c) == Character.LETTER_NUMBER));
    }

    private static boolean isNamePart(int c) {
        if (isNameStart(c) || c == '\u200c' || c == '\u200d') {
            return true;
        }
        int type = c < 0 ? Character.UNASSIGNED : Character.getType(c);
        return type == Character.NON_SPACING_MARK
                || type == Character.COMBINING_SPACING_MARK
                || type == Character.DECIMAL_DIGIT_NUMBER
                || type == Character.CONNECTOR_PUNCTUATION;
    }

    private int peek() {
        return at < text.length() ? text.codePointAt(at) : -1;
    }

    private InvalidJson5Exception invalid(String message) {
        return new InvalidJson5Exception(Math.min(at, text.length()), message);
    }
}
