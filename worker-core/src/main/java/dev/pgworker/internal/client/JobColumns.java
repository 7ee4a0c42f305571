package dev.pgworker.internal.client;

import org.jspecify.annotations.Nullable;

/** What administration reads of a job, which is row {@code j} of its statements. */
final class JobColumns {

    /** The columns in the order of {@link dev.pgworker.internal.store.JobRows#addedJob}, with a comma at the end. */
    static final String ALL = with("j.payload");

    /** How often it was recovered, null for never. */
    static final String RECOVERIES = """
            (select r.recoveries from {schema}.pgworker_recoveries r where r.job_id = j.id and r.revision = j.revision)
            """;

    /** Of a list, no payload is read that takes more. */
    private static final int LARGE = 100_000;

    /** The end of a payload that was cut, which is no JSON. */
    static final String CUT = "…";

    private JobColumns() {}

    /**
     * Returns the columns as {@link #ALL} has them, with a payload that may be a character longer than the limit, so that {@link #cut}
     * knows.
     *
     * @param payloadLimit maximum number of characters; null for payloads as they are
     * @param largeOnes whether to read payloads that take more than 100 kB
     */
    static String limiting(@Nullable Integer payloadLimit, boolean largeOnes) {
        if (payloadLimit == null) {
            return ALL;
        }
        if (payloadLimit == 0) {
            return with("''");
        }
        String beginning = "pg_catalog.left(j.payload::pg_catalog.text, " + (payloadLimit + 1) + ")";
        // The size is known without reading the value.
        return with(
                largeOnes
                        ? beginning
                        : "case when pg_catalog.pg_column_size(j.payload) <= " + LARGE + " then " + beginning + " end");
    }

    /** Returns what a caller gets of a payload, of which null was not read. */
    static String cut(@Nullable String payload, @Nullable Integer limit) {
        if (payload == null) {
            return CUT;
        }
        return limit == null || payload.codePointCount(0, payload.length()) <= limit
                ? payload
                : payload.substring(0, payload.offsetByCodePoints(0, limit)) + CUT;
    }

    private static String with(String payload) {
        return "j.id, " + payload + ", j.priority, j.run_at, j.attempts, j.max_attempts, j.last_error, j.created_at,"
                + " j.updated_at, j.key, j.locked_at, j.locked_by, j.revision, j.flags, ";
    }
}
