package dev.pgworker.internal.client;

/** What administration reads of a job, which is row {@code j} of its statements. */
final class JobColumns {

    /** The columns in the order of {@link dev.pgworker.internal.store.JobRows#addedJob}, with a comma at the end. */
    static final String ALL =
            "j.id, j.payload, j.priority, j.run_at, j.attempts, j.max_attempts, j.last_error, j.created_at,"
                    + " j.updated_at, j.key, j.locked_at, j.locked_by, j.revision, j.flags, ";

    /** How often it was recovered, null for never. */
    static final String RECOVERIES = """
            (select r.recoveries from {schema}.pgworker_recoveries r where r.job_id = j.id and r.revision = j.revision)
            """;

    private JobColumns() {}
}
