package dev.pgworker.dashboard;

import java.nio.charset.StandardCharsets;

import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.core.StreamReadConstraints;
import tools.jackson.core.StreamReadFeature;
import tools.jackson.core.json.JsonFactory;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Reads and writes JSON in the dashboard's own way, whatever the application has configured. */
final class Json {

    /** Larger ones are for programs to add. */
    static final int LONGEST_PAYLOAD = 10 * 1024 * 1024;

    private static final JsonMapper mapper = JsonMapper.builder(JsonFactory.builder()
                    .streamReadConstraints(StreamReadConstraints.builder()
                            .maxNestingDepth(500)
                            .maxStringLength(2 * LONGEST_PAYLOAD)
                            .build())
                    .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                    .build())
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
            .build();

    private Json() {}

    /** Through text, in which a lone surrogate becomes a question mark; written as bytes it would be an error. */
    static byte[] bytes(Object value) {
        return mapper.writeValueAsString(value).getBytes(StandardCharsets.UTF_8);
    }

    /**
     * Reads a value.
     *
     * @param name what the text is, for the message of an IllegalArgumentException
     */
    static JsonNode read(String name, String text) {
        try {
            JsonNode value = mapper.readTree(text);
            if (value == null || value.isMissingNode()) {
                throw new IllegalArgumentException(name + " must be JSON, but is empty");
            }
            return value;
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(name + " has a number whose exponent is out of range", e);
        } catch (JacksonException e) {
            throw new IllegalArgumentException(name + " is not JSON: " + reason(e) + place(e), e);
        }
    }

    /** Says nothing of the source, which has no name, and of settings of the parser, which a visitor does not have. */
    private static String reason(JacksonException e) {
        return String.valueOf(e.getOriginalMessage())
                .replaceAll(
                        " \\((start marker at|bound as) .*|: (enable `|maybe a \\(non-standard\\) comment).*"
                                + "|, from `[^`]*`| \\(`[^`]*`\\)",
                        "");
    }

    private static String place(JacksonException e) {
        return e.getLocation() == null
                ? ""
                : " (line " + e.getLocation().getLineNr() + ", column "
                        + e.getLocation().getColumnNr() + ")";
    }

    /** Returns what a worker publishes about itself; an empty object if that cannot be read. */
    static JsonNode lenient(@Nullable String text) {
        try {
            return text == null ? mapper.createObjectNode() : mapper.readTree(text);
        } catch (JacksonException e) {
            return mapper.createObjectNode();
        }
    }
}
