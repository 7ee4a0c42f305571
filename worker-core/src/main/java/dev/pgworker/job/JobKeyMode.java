package dev.pgworker.job;

/**
 * What happens when a job is added under a key that another job has already.
 *
 * <p>In every mode a job with a key that no row has is simply added. The algorithm is that of Graphile Worker's
 * {@code job_key_mode}.
 *
 * @since 0.1.0
 */
public enum JobKeyMode {

    /**
     * Overwrites the waiting job with all values of the added one, {@code runAt} included (debouncing). A running or
     * permanently failed job keeps its row without the key, and a further row is added.
     */
    REPLACE("replace"),

    /**
     * As {@link #REPLACE}, but a waiting job that has not been attempted yet keeps its {@code runAt} (throttling).
     */
    PRESERVE_RUN_AT("preserve_run_at"),

    /**
     * Leaves an existing job as it is, even a running or permanently failed one. The added work may therefore never
     * happen: use it only where that is acceptable.
     */
    UNSAFE_DEDUPE("unsafe_dedupe");

    private final String sqlName;

    JobKeyMode(String sqlName) {
        this.sqlName = sqlName;
    }

    /** Returns the name of this mode in SQL, as {@code add_job} takes it for {@code job_key_mode}. */
    public String sqlName() {
        return sqlName;
    }
}
