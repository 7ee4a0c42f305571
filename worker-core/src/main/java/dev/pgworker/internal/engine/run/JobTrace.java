package dev.pgworker.internal.engine.run;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.jspecify.annotations.Nullable;
import org.slf4j.MDC;

/**
 * The trace that a run of a job belongs to, by the keys under which Micrometer Tracing puts it into the logging context.
 *
 * @param traceId 32 hexadecimal digits as a rule
 * @param spanId null if it is not known
 */
public record JobTrace(String traceId, @Nullable String spanId) {

    private static final String TRACE_ID = "traceId";
    private static final String SPAN_ID = "spanId";

    private static final int LONGEST_ID = 128;

    private static final Pattern IN_PAYLOAD =
            Pattern.compile("\"_trace\"\\s*+:\\s*+\\{[^{}]{0,300}?\"trace_id\"\\s*+:\\s*+\"([0-9a-fA-F]{32})\"");

    /** Returns the trace that the logging context of the calling thread names; null if it names none. */
    static @Nullable JobTrace current() {
        String traceId = MDC.get(TRACE_ID);
        return traceId == null ? null : new JobTrace(traceId, MDC.get(SPAN_ID));
    }

    /** Returns the trace in which a job was added, as its payload carries it; null if it carries none. */
    static @Nullable JobTrace in(String payload) {
        Matcher found = IN_PAYLOAD.matcher(payload);
        return found.find() ? new JobTrace(found.group(1), null) : null;
    }

    /** Returns the id of the trace as every database can store it; null if it cannot be one. */
    @Nullable String storable() {
        boolean plain = traceId.length() <= LONGEST_ID && traceId.chars().allMatch(c -> c > ' ' && c < 0x7f);
        return plain ? traceId : null;
    }

    /** Puts this into the logging context of the calling thread. */
    public void put() {
        MDC.put(TRACE_ID, traceId);
        if (spanId != null) {
            MDC.put(SPAN_ID, spanId);
        }
    }

    /** Removes what {@link #put} has put there. */
    public static void clear() {
        MDC.remove(TRACE_ID);
        MDC.remove(SPAN_ID);
    }
}
