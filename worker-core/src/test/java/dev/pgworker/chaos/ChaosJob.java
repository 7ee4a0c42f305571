package dev.pgworker.chaos;

/**
 * The payload of every job.
 *
 * @param n tells this add from all others
 * @param millis how long its handler sleeps
 */
public record ChaosJob(int n, Kind kind, int millis) {

    /** What is special about a job. */
    public enum Kind {
        PLAIN,
        QUEUED,
        /** Writes a row in the transaction that deletes its job. */
        TRANSACTIONAL,
        /** Fails at its first attempt. */
        FAILS_ONCE,
        KEYED,
        /** Runs for so long that its worker may be taken for dead and come back while another runs it. */
        LONG,
        /** Of a direct task: runs again with its batch if that breaks. */
        DIRECT
    }
}
