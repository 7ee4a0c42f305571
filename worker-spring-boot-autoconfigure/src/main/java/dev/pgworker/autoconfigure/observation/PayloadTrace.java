package dev.pgworker.autoconfigure.observation;

import java.util.Locale;

import io.micrometer.tracing.TraceContext;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.cfg.JsonNodeFeature;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/**
 * A trace as payloads carry it, readable for the Rust worker: {@code "_trace": {"flags": 1, "trace_id": "...", "span_id":
 * "..."}} in an object, and in each object of a list. A payload without any object carries none.
 *
 * @param traceId 32 hexadecimal digits; empty for no trace
 * @param spanId 16 hexadecimal digits; empty for no trace
 * @param flags 1 if the trace is sampled, else 0
 */
record PayloadTrace(String traceId, String spanId, int flags) {

    static final PayloadTrace NONE = new PayloadTrace("", "", 0);

    private static final String KEY = "_trace";

    /** Keeps numbers as they are written. */
    private static final JsonMapper mapper = JsonMapper.builder()
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
            .disable(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
            .build();

    /** A trace and the payload without it. */
    record Found(PayloadTrace trace, String payload) {}

    static PayloadTrace of(TraceContext context) {
        // A tracer may be set to short trace ids; others know only long ones.
        String traceId = "0".repeat(Math.max(0, 32 - context.traceId().length())) + context.traceId();
        return new PayloadTrace(traceId, context.spanId(), Boolean.TRUE.equals(context.sampled()) ? 1 : 0);
    }

    /** Returns the payload with this trace in it. */
    JsonNode writtenInto(String payload) {
        JsonNode json = mapper.readTree(payload);
        if (json instanceof ObjectNode object) {
            writeInto(object);
        } else if (json.isArray()) {
            for (JsonNode item : json) {
                if (item instanceof ObjectNode object) {
                    writeInto(object);
                }
            }
        }
        return json;
    }

    private void writeInto(ObjectNode object) {
        object.putObject(KEY).put("flags", flags).put("trace_id", traceId).put("span_id", spanId);
    }

    /** Returns the trace of a payload, of a list the first one, and the payload without any; null if it carries none. */
    static @Nullable Found in(String payload) {
        if (!payload.contains('"' + KEY + '"')) {
            return null;
        }
        JsonNode json = mapper.readTree(payload);
        PayloadTrace first = null;
        for (JsonNode item : json.isArray() ? json : mapper.createArrayNode().add(json)) {
            PayloadTrace trace = takenFrom(item);
            first = first == null ? trace : first;
        }
        return first == null ? null : new Found(first, mapper.writeValueAsString(json));
    }

    private static @Nullable PayloadTrace takenFrom(JsonNode item) {
        JsonNode trace = item.path(KEY);
        String traceId = trace.path("trace_id").asString("");
        String spanId = trace.path("span_id").asString("");
        if (!(item instanceof ObjectNode object) || !isHex(traceId, 32) || !isHex(spanId, 16)) {
            return null;
        }
        object.remove(KEY);
        return new PayloadTrace(traceId, spanId, trace.path("flags").asInt(0));
    }

    private static boolean isHex(String text, int length) {
        return text.length() == length && text.chars().allMatch(c -> Character.digit(c, 16) >= 0);
    }

    /** Answers the propagator's question for a header, in the formats of W3C and B3; null for no trace. */
    static @Nullable String header(@Nullable PayloadTrace trace, String name) {
        if (trace == null || trace.traceId.isEmpty()) {
            return null;
        }
        String sampled = (trace.flags & 1) == 1 ? "1" : "0";
        return switch (name.toLowerCase(Locale.ROOT)) {
            case "traceparent" -> "00-" + trace.traceId + "-" + trace.spanId + "-0" + sampled;
            case "b3" -> trace.traceId + "-" + trace.spanId + "-" + sampled;
            case "x-b3-traceid" -> trace.traceId;
            case "x-b3-spanid" -> trace.spanId;
            case "x-b3-sampled" -> sampled;
            default -> null;
        };
    }
}
