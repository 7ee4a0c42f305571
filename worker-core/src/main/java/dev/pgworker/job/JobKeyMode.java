package dev.pgworker.job;

/**
 * What happens when a job is added under a key that another job has already.
 *
 * <p>In every mode, a job is added if no other job has its key. The modes are those of Graphile Worker's {@code
 * job_key_mode}, and one of PgWorker's own.
 *
 * @since 0.1.0
 */
public enum JobKeyMode {

    /**
     * Overwrites the waiting job with all values of the added one, including {@code runAt} (debouncing). A running or
     * permanently failed job keeps its row but loses the key, and another row is added.
     */
    REPLACE("replace"),

    /**
     * Same as {@link #REPLACE}, but a waiting job that has not been attempted yet keeps its {@code runAt} (throttling).
     */
    PRESERVE_RUN_AT("preserve_run_at"),

    /**
     * Leaves an existing job unchanged, even a running or permanently failed one. The added work may therefore never be
     * done; use this mode only where that is acceptable.
     */
    UNSAFE_DEDUPE("unsafe_dedupe"),

    /**
     * Same as {@link #REPLACE}, but a running job is also {@linkplain JobChanges#cancel(String) cancelled}, in the same transaction: it
     * is interrupted when that commits, and never runs again. The added job may start before the handler of the cancelled one has
     * ended; give both the same {@linkplain JobSpec#queueName queue} if that must not be. Only PgWorker knows this mode: {@code
     * add_job} of a schema that PgWorker has installed accepts it from every program.
     */
    REPLACE_AND_CANCEL("replace_and_cancel");

    private final String sqlName;

    JobKeyMode(String sqlName) {
        this.sqlName = sqlName;
    }

    /** Returns the name of this mode in SQL, as {@code add_job} accepts it for {@code job_key_mode}. */
    public String sqlName() {
        return sqlName;
    }
}
