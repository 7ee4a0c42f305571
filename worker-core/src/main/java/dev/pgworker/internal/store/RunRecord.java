package dev.pgworker.internal.store;

import org.jspecify.annotations.Nullable;

/**
 * What the history is told of a run that only its worker knows.
 *
 * @param micros how long the handler ran, in microseconds
 * @param result what it returned, as JSON text; null for nothing
 * @param traceId the trace of the run; null if there is none
 */
public record RunRecord(
        long micros, @Nullable String result, @Nullable String traceId) {

    /** Returns this with a result that every encoding of a database has. What is not ASCII stands within strings of the JSON only. */
    public RunRecord inAscii() {
        if (result == null || result.chars().allMatch(c -> c < 0x80)) {
            return this;
        }
        StringBuilder escaped = new StringBuilder(result.length() * 2);
        result.chars().forEach(c -> {
            if (c < 0x80) {
                escaped.append((char) c);
            } else {
                escaped.append(String.format("\\u%04x", c));
            }
        });
        return new RunRecord(micros, escaped.toString(), traceId);
    }
}
