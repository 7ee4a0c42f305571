package dev.pgworker.job;

/**
 * The number of jobs in each state.
 *
 * @param ready see {@link JobState#READY}
 * @param scheduled see {@link JobState#SCHEDULED}
 * @param retrying see {@link JobState#RETRYING}
 * @param limited see {@link JobState#LIMITED}
 * @param running see {@link JobState#RUNNING}
 * @param failed see {@link JobState#FAILED}
 * @param complete false if there may be more, because a query with a {@link JobQuery#scanLimit()} had read as many jobs as
 *     it may
 * @since 0.1.0
 */
public record JobCounts(
        long ready, long scheduled, long retrying, long limited, long running, long failed, boolean complete) {

    /** Creates complete numbers. */
    public JobCounts(long ready, long scheduled, long retrying, long limited, long running, long failed) {
        this(ready, scheduled, retrying, limited, running, failed, true);
    }

    /** Returns the number of jobs in all states. */
    public long total() {
        return ready + scheduled + retrying + limited + running + failed;
    }
}
