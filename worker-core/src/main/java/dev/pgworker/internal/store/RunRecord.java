package dev.pgworker.internal.store;

import org.jspecify.annotations.Nullable;

/**
 * What the history gets of a run that only its worker knows.
 *
 * @param micros how long the handler ran, in microseconds
 * @param result what it returned, as JSON text of ASCII characters, which every encoding of a database has; null for nothing
 * @param traceId the trace of the run; null if there is none
 */
public record RunRecord(
        long micros, @Nullable String result, @Nullable String traceId) {

    /** Returns this without what the handler returned. */
    public RunRecord withoutResult() {
        return new RunRecord(micros, null, traceId);
    }
}
