package dev.pgworker.cli;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Pattern;
import java.util.stream.Stream;

import tools.jackson.core.JacksonException;
import tools.jackson.core.JsonParser;
import tools.jackson.core.JsonToken;
import tools.jackson.core.ObjectReadContext;
import tools.jackson.core.StreamReadConstraints;
import tools.jackson.core.TokenStreamLocation;
import tools.jackson.core.json.JsonFactory;

/** Payloads, which are stored as they were written, after a look whether they are JSON. */
final class Payloads {

    /** What the parser says to programmers: where an object or array that is not closed began, settings and their names. */
    private static final Pattern FOR_PROGRAMMERS =
            Pattern.compile(" \\(start marker at .*\\)|: enable `[^`]*` to allow|, from `[^`]*`");

    private static final Path STANDARD_INPUT = Path.of("-");

    /** What the database can hold is for the database to say; so deep a nesting nobody reads. */
    private static final JsonFactory JSON = JsonFactory.builder()
            .streamReadConstraints(StreamReadConstraints.builder()
                    .maxStringLength(Integer.MAX_VALUE)
                    .maxNumberLength(100_000)
                    .maxNameLength(Integer.MAX_VALUE)
                    .build())
            .build();

    private Payloads() {}

    /** Returns the payload if it is one JSON value. */
    static String check(String source, String json) {
        try (JsonParser parser = JSON.createParser(ObjectReadContext.empty(), json)) {
            JsonToken first = parser.nextToken();
            if (first == null) {
                throw CommandFailure.usage(source + " must be JSON, but is empty");
            }
            parser.skipChildren();
            checkText(parser, first);
            if (parser.nextToken() != null) {
                throw CommandFailure.usage(source + " must be one JSON value, but something follows it"
                        + place(parser.currentTokenLocation()));
            }
        } catch (JacksonException e) {
            throw new CommandFailure(
                    ExitStatus.USAGE,
                    source + " must be JSON: "
                            + Text.line(FOR_PROGRAMMERS
                                    .matcher(e.getOriginalMessage())
                                    .replaceAll(""))
                            + place(e.getLocation()),
                    e);
        }
        return json;
    }

    /** A text or number is only read when somebody asks for it. */
    private static void checkText(JsonParser parser, JsonToken token) {
        if (token.isScalarValue()) {
            int unused = parser.getString().length();
        }
    }

    private static String place(TokenStreamLocation location) {
        if (location == null || location.getLineNr() < 1) {
            return "";
        }
        String line = location.getLineNr() == 1 ? "" : "line " + location.getLineNr() + ", ";
        return " (" + line + "column " + location.getColumnNr() + ")";
    }

    /** Reads a file that is one payload. */
    static String read(Path file, Terminal terminal) {
        try (InputStream in = open(file, terminal)) {
            byte[] bytes = in.readAllBytes();
            return check(
                    "--payload-file",
                    withoutMark(StandardCharsets.UTF_8
                            .newDecoder()
                            .decode(ByteBuffer.wrap(bytes))
                            .toString()));
        } catch (IOException e) {
            throw unreadable(file, e);
        }
    }

    /** Reads a file of which each line that is not blank is a payload. */
    static Stream<String> lines(Path file, Terminal terminal) {
        try {
            BufferedReader reader = new BufferedReader(
                    new InputStreamReader(open(file, terminal), StandardCharsets.UTF_8.newDecoder()));
            AtomicLong number = new AtomicLong();
            return reader.lines()
                    .map(Payloads::withoutMark)
                    .peek(line -> number.incrementAndGet())
                    .filter(line -> !line.isBlank())
                    .map(line -> check("--payload-file, line " + number.get() + ",", line))
                    .onClose(() -> close(reader));
        } catch (IOException e) {
            throw unreadable(file, e);
        }
    }

    private static void close(BufferedReader reader) {
        try {
            reader.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static String withoutMark(String text) {
        return text.startsWith("\ufeff") ? text.substring(1) : text;
    }

    private static InputStream open(Path file, Terminal terminal) throws IOException {
        return file.equals(STANDARD_INPUT) ? terminal.in() : Files.newInputStream(file);
    }

    static CommandFailure unreadable(Path file, IOException failure) {
        String reason = failure instanceof CharacterCodingException ? "it is not UTF-8" : Reasons.of(failure);
        return new CommandFailure(ExitStatus.USAGE, "--payload-file " + file + " cannot be read: " + reason, failure);
    }
}
